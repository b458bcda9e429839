//! Takes how one page is read; gives a scan of all of them, one after the other.

use flare_core::port::Scan;
use flare_core::{Error, Result};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};

/// What a page of a scan has, and where the next one begins if there is one.
pub(crate) type ScanPage<T, P> = (Vec<Result<T>>, Option<P>);

/// The pages of a scan, each read after the place where the last one ended.
pub(crate) fn pages<'a, T: Send + 'a, P: Send + 'a>(
    start: P,
    page: impl Fn(P) -> BoxFuture<'a, Result<ScanPage<T, P>>> + Send + 'a,
) -> Scan<'a, T> {
    let pages = stream::try_unfold(Some(start), move |place| {
        let read = place.map(&page);
        async move {
            let Some(read) = read else { return Ok::<_, Error>(None) };
            let (items, next) = read.await?;
            Ok(Some((stream::iter(items.into_iter().map(Ok)), next)))
        }
    });
    pages.try_flatten().map(|item| item.and_then(|item| item)).boxed()
}
