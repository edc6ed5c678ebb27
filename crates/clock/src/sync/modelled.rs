pub(crate) use loom::sync::{Mutex, MutexGuard};

use loom::thread::LocalKey;
use std::cell::{Cell, RefCell};

/// A variable of each thread of a model. It has the methods of [`std::thread::LocalKey`] that this
/// crate uses, which loom's lacks.
pub(crate) struct Local<T: 'static>(pub(crate) &'static LocalKey<T>);

macro_rules! locals {
    ($(static $name:ident: $type:ty = $first:expr;)*) => {$(
        static $name: $crate::sync::Local<$type> = {
            loom::thread_local! { static KEY: $type = $first; }
            $crate::sync::Local(&KEY)
        };
    )*};
}
pub(crate) use locals;

impl<T: Copy> Local<Cell<T>> {
    pub(crate) fn get(&self) -> T {
        self.0.with(Cell::get)
    }

    pub(crate) fn set(&self, value: T) {
        self.0.with(|cell| cell.set(value));
    }
}

impl<T> Local<RefCell<T>> {
    pub(crate) fn with_borrow<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        self.0.with(|cell| read(&cell.borrow()))
    }

    pub(crate) fn with_borrow_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.with(|cell| change(&mut cell.borrow_mut()))
    }

    pub(crate) fn replace(&self, value: T) -> T {
        self.0.with(|cell| cell.replace(value))
    }

    pub(crate) fn set(&self, value: T) {
        drop(self.replace(value));
    }

    pub(crate) fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }
}
