//! What a page owes once its data is on the flash, and what a failed page owes.

use crate::page_ftl::landing::Landing;
use std::sync::{Arc, Mutex, PoisonError};

/// The actions to take when all data of a page is on the flash.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// Room in the buffer to give back.
    pub(crate) host_slots: u32,
    /// 0 if hosts wrote none of it.
    pub(crate) ticket: u64,
    pub(crate) landing: Option<Arc<Landing>>,
    /// Failed pages whose data is partly in this one.
    pub(crate) debts: Vec<Arc<Debt>>,
    /// The unit of the failed page, if its collector waits for the page.
    pub(crate) waits: Option<u32>,
}

impl Owed {
    /// True when it has host data.
    pub(crate) fn is_to_hosts(&self) -> bool {
        self.host_slots > 0 || self.debts.iter().any(|debt| debt.is_to_hosts())
    }
}

/// The obligations of a failed page.
#[derive(Debug)]
pub(crate) struct Debt(Mutex<Left>);

#[derive(Debug)]
struct Left {
    /// Pages that hold parts of it and have not landed, plus one until the first [`Debt::pay`].
    pages: u32,
    owed: Option<Owed>,
}

impl Debt {
    /// Counts one page until [`Self::pay`] is called once.
    pub(crate) fn new(owed: Owed) -> Self {
        Self(Mutex::new(Left { pages: 1, owed: Some(owed) }))
    }

    pub(crate) fn add_page(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pages += 1;
    }

    /// Counts a landed page. Returns what is owed after the last one.
    pub(crate) fn pay(&self) -> Option<Owed> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.pages -= 1;
        if left.pages == 0 { left.owed.take() } else { None }
    }

    /// True when it has host data.
    pub(crate) fn is_to_hosts(&self) -> bool {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.owed.as_ref().is_some_and(Owed::is_to_hosts)
    }

    /// Returns what is owed, which will never be paid.
    pub(crate) fn default_on(&self) -> Option<Owed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).owed.take()
    }
}
