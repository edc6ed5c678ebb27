//! What a server says of itself by HTTP, while hosts come, work and go: the numbers follow from
//! what they did. Whoever asks strangely harms neither them nor those who ask rightly.

#[cfg(test)]
mod counts;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod strangers;
