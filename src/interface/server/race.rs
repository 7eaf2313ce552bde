//! The first of two futures.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// The output of the future that was ready first.
pub(super) enum Either<A, B> {
    Left(A),
    Right(B),
}

/// Returns the output of the future that is ready first; drops the other.
pub(super) async fn either<A: Future, B: Future>(left: A, right: B) -> Either<A::Output, B::Output> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    poll_fn(|context| {
        if let Poll::Ready(output) = left.as_mut().poll(context) {
            return Poll::Ready(Either::Left(output));
        }
        right.as_mut().poll(context).map(Either::Right)
    })
    .await
}
