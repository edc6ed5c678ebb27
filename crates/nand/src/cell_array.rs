use clock::{Operate, Resource, Serve, Station};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The unit that senses, programs and erases the cells of a die or a plane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CellArray {
    Plain(Resource),
    /// An array whose work can be joined or suspended.
    Station(Station),
}

/// A [`CellArray`] at work; returns how often the work was suspended.
///
/// An enum rather than an `async fn`, which would nest one more future in every read.
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
