use clock::{Operate, Resource, Serve, Station};
use std::pin::Pin;
use std::task::{Context, Poll};

/// What senses, programs and erases the cells of a die or a plane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CellArray {
    Plain(Resource),
    /// Its work can be joined or suspended.
    Station(Station),
}

/// A [`CellArray`] at work, and how often that was suspended.
///
/// An enum and not an `async fn`, which would be one more future inside that of every read.
pub(crate) enum Working {
    Plain(Serve),
    Station(Operate),
}

impl Future for Working {
    type Output = u32;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u32> {
        match self.get_mut() {
            Self::Plain(serve) => Pin::new(serve).poll(context).map(|()| 0),
            Self::Station(operate) => Pin::new(operate).poll(context),
        }
    }
}
