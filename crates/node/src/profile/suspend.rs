use crate::profile::error::ProfileError;
use crate::profile::section::Section;
use base::Nanos;
use serde::Serialize;

/// Suspension of a program or an erase, so that a host's read can go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Suspend {
    /// Time to suspend a program; `None` if programs cannot be suspended.
    #[serde(rename = "program_suspend_ns", with = "super::nanos::optional")]
    pub program: Option<Nanos>,
    /// The same for an erase.
    #[serde(rename = "erase_suspend_ns", with = "super::nanos::optional")]
    pub erase: Option<Nanos>,
    /// Time to resume a program or an erase.
    #[serde(rename = "resume_ns", with = "super::nanos")]
    pub resume: Nanos,
}

impl Suspend {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let program = section.micros_or_none("program_suspend_us")?;
        let erase = section.micros_or_none("erase_suspend_us")?;
        let resume = section.micros_or_none("resume_us")?;
        if let Some(field) = section.optional("resume_us")
            && program.is_none()
            && erase.is_none()
        {
            return Err(field.wrong(
                "resume_us is given, but neither program_suspend_us nor erase_suspend_us is"
                    .to_owned(),
            ));
        }
        Ok(Self { program, erase, resume: resume.unwrap_or(Nanos::ZERO) })
    }
}
