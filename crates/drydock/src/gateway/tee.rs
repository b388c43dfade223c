//! A request body that is read once and sent twice, without being held in memory.
//!
//! The copy follows at the pace of the original. If it falls behind by more than a few frames it breaks off with an
//! error: a mirror may lose a request, the real backend may not wait for it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tower::BoxError;

use crate::proxy::{Body, empty};

/// Frames the copy may lag behind.
const LAG: usize = 64;

/// Splits a body into itself and a copy.
pub(super) fn tee(body: Body) -> (Body, Body) {
    if body.is_end_stream() {
        return (body, empty());
    }
    let (sender, receiver) = mpsc::channel(LAG);
    let hint = body.size_hint();
    let original = Original { body, copy: Some(sender) };
    let copy = Copy { frames: receiver, ended: false, hint };
    (original.boxed_unsync(), copy.boxed_unsync())
}

struct Original {
    body: Body,
    /// `None` data marks the proper end.
    copy: Option<mpsc::Sender<Option<Bytes>>>,
}

impl HttpBody for Original {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let told = match (&polled, &self.copy) {
            (Poll::Ready(None), Some(copy)) => copy.try_send(None).is_ok(),
            (Poll::Ready(Some(Ok(frame))), Some(copy)) => match frame.data_ref() {
                Some(data) => copy.try_send(Some(data.clone())).is_ok(),
                None => true,
            },
            (Poll::Ready(Some(Err(_))), _) => false,
            _ => true,
        };
        // A body of known length may never be polled to its end, so the end is told as soon as it is known.
        if self.body.is_end_stream()
            && let Some(copy) = self.copy.take()
        {
            let _ = copy.try_send(None);
        }
        if !told {
            self.copy = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct Copy {
    frames: mpsc::Receiver<Option<Bytes>>,
    ended: bool,
    hint: SizeHint,
}

impl HttpBody for Copy {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.frames.poll_recv(cx).map(|message| match message {
            Some(Some(data)) => Some(Ok(Frame::data(data))),
            Some(None) => {
                self.ended = true;
                None
            }
            None => {
                self.ended = true;
                Some(Err("the copy fell behind or the original broke off".into()))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;

    use super::*;

    fn frames(count: usize) -> Body {
        let all = (0..count).map(|_| Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"x"))));
        StreamBody::new(futures::stream::iter(all)).boxed_unsync()
    }

    #[tokio::test]
    async fn both_ends_get_every_byte() {
        let (original, copy) = tee(frames(10));
        let (one, two) = tokio::join!(original.collect(), copy.collect());
        assert_eq!(one.unwrap().to_bytes(), two.unwrap().to_bytes());
    }

    #[tokio::test]
    async fn a_copy_nobody_reads_does_not_stop_the_original() {
        let (original, copy) = tee(frames(LAG * 2));
        assert_eq!(original.collect().await.unwrap().to_bytes().len(), LAG * 2);
        assert!(copy.collect().await.is_err());
    }
}
