//! The HTTP status of a server while hosts connect, run commands and disconnect: the counters match
//! their commands. Malformed or slow requests delay neither hosts nor other HTTP clients.

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
