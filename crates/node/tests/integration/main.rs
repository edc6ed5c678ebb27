//! Devices and drives put together from their profiles, as hosts use them.

mod device;
mod disk_drive;
mod fault_plans;
mod hosts;
mod indexes;
#[cfg(test)]
mod lost_content;
mod lost_pages;
mod old_copies;
mod profile_errors;
mod profile_fuzz;
mod profile_namespaces;
mod profile_values;
mod scrubbing;
mod shared_drive;
mod status;
