//! Cutting and joining the frames of Replicate, so that none is larger than 64 KiB.
//!
//! Owns the form of a part and the bound of a whole. Each part counts as a sign of life at the other end, so that a
//! large frame on a slow line never looks like a dead peer. Invariant: the parts of one frame follow each other with
//! nothing between them. Section 3 of the contract.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::Stream;

use super::{Malformed, v1};

use v1::{follower_frame as follower, leader_frame as leader};

/// The largest frame that travels, in bytes.
pub const LARGEST_FRAME: usize = 64 << 10;
/// Bytes of a whole in one part; the rest of [`LARGEST_FRAME`] is for what stands around them.
const LARGEST_PIECE: usize = 65_000;
/// The largest whole, in bytes: a full ledger with the payloads of its unfinished jobs is far below it.
pub const LARGEST_WHOLE: usize = 1 << 30;

/// A frame of either direction.
pub trait Frame: Message + Default {
    /// A frame that carries a part.
    fn of_part(part: v1::Part) -> Self;

    /// The part that it carries, if it carries one.
    ///
    /// # Errors
    /// The frame itself, if it is whole.
    fn into_part(self) -> Result<v1::Part, Self>;
}

impl Frame for v1::FollowerFrame {
    fn of_part(part: v1::Part) -> Self {
        v1::FollowerFrame { frame: Some(follower::Frame::Part(part)) }
    }

    fn into_part(self) -> Result<v1::Part, Self> {
        match self.frame {
            Some(follower::Frame::Part(part)) => Ok(part),
            _ => Err(self),
        }
    }
}

impl Frame for v1::LeaderFrame {
    fn of_part(part: v1::Part) -> Self {
        v1::LeaderFrame { frame: Some(leader::Frame::Part(part)) }
    }

    fn into_part(self) -> Result<v1::Part, Self> {
        match self.frame {
            Some(leader::Frame::Part(part)) => Ok(part),
            _ => Err(self),
        }
    }
}

/// The frames in which one frame travels: itself, or its parts, made one by one.
#[derive(Debug)]
pub struct Cut<F> {
    whole: Option<F>,
    bytes: Vec<u8>,
    at: usize,
}

impl<F: Frame> Cut<F> {
    /// Cuts a frame if it must be.
    ///
    /// # Errors
    /// [`Malformed`] if it is above [`LARGEST_WHOLE`].
    pub fn new(frame: F) -> Result<Cut<F>, Malformed> {
        let size = frame.encoded_len();
        if size > LARGEST_WHOLE {
            return Err(too_large(size));
        }
        if size <= LARGEST_FRAME {
            return Ok(Cut { whole: Some(frame), bytes: Vec::new(), at: 0 });
        }
        Ok(Cut { whole: None, bytes: frame.encode_to_vec(), at: 0 })
    }
}

impl<F: Frame> Iterator for Cut<F> {
    type Item = F;

    fn next(&mut self) -> Option<F> {
        if let Some(whole) = self.whole.take() {
            return Some(whole);
        }
        let end = self.bytes.len().min(self.at + LARGEST_PIECE);
        let piece = self.bytes.get(self.at..end).filter(|piece| !piece.is_empty())?;
        let part = v1::Part {
            data: piece.to_vec(),
            // Fits: a whole is at most `LARGEST_WHOLE`.
            left: u32::try_from(self.bytes.len() - end).unwrap_or(u32::MAX),
        };
        self.at = end;
        Some(F::of_part(part))
    }
}

/// The frames of one direction of one stream, as they come out of an outbox and travel.
#[derive(Debug)]
pub struct Outgoing<T, F> {
    outbox: mpsc::Receiver<T>,
    under_way: Option<Cut<F>>,
}

impl<T, F> Outgoing<T, F> {
    /// Of an outbox; ends with it, after what it holds.
    #[must_use]
    pub fn new(outbox: mpsc::Receiver<T>) -> Outgoing<T, F> {
        Outgoing { outbox, under_way: None }
    }
}

impl<T, F> Stream for Outgoing<T, F>
where
    F: Frame + Unpin + for<'a> From<&'a T>,
{
    type Item = Result<F, Malformed>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(frame) = self.under_way.as_mut().and_then(Iterator::next) {
                return Poll::Ready(Some(Ok(frame)));
            }
            self.under_way = None;
            match ready!(self.outbox.poll_recv(cx)) {
                None => return Poll::Ready(None),
                Some(frame) => match Cut::new(F::from(&frame)) {
                    Ok(cut) => self.under_way = Some(cut),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
            }
        }
    }
}

/// A frame that came as it is, if it may.
fn sized<F: Frame>(whole: F) -> Result<F, Malformed> {
    match whole.encoded_len() {
        0..=LARGEST_FRAME => Ok(whole),
        size => Err(Malformed::new(
            "frame",
            format_args!("{size} bytes"),
            format!("at most {LARGEST_FRAME}, more in parts"),
        )),
    }
}

fn too_large(size: usize) -> Malformed {
    Malformed::new("frame", format_args!("{size} bytes in all"), format!("at most {LARGEST_WHOLE}"))
}

/// Puts the frames of one direction of one stream together again.
#[derive(Debug)]
pub struct Joined<F> {
    bytes: Vec<u8>,
    /// What the last part announced; 0 between two frames.
    left: usize,
    frame: PhantomData<F>,
}

impl<F: Frame> Default for Joined<F> {
    fn default() -> Self {
        Joined { bytes: Vec::new(), left: 0, frame: PhantomData }
    }
}

impl<F: Frame> Joined<F> {
    /// Takes the next frame and gives back a whole one, if it was one or completes one; none after any other part.
    /// After an error the stream is of no more use.
    ///
    /// # Errors
    /// [`Malformed`] if the parts do not fit together, are too large in all, or are no frame.
    pub fn take(&mut self, frame: F) -> Result<Option<F>, Malformed> {
        let part = match frame.into_part() {
            Err(_) if self.left > 0 => {
                return Err(Malformed::new("frame", "a whole frame amid parts", format!("{} bytes more", self.left)));
            }
            Err(whole) => return sized(whole).map(Some),
            Ok(part) => part,
        };
        let left = usize::try_from(part.left).unwrap_or(usize::MAX);
        let whole = self.bytes.len().saturating_add(part.data.len()).saturating_add(left);
        if whole > LARGEST_WHOLE {
            return Err(too_large(whole));
        }
        let first = self.bytes.is_empty();
        if part.data.is_empty() || (!first && part.data.len() + left != self.left) {
            let allowed = if first { "1 byte or more".to_owned() } else { format!("what is left of {}", self.left) };
            return Err(Malformed::new("part", format_args!("{} bytes, {left} left", part.data.len()), allowed));
        }
        self.bytes.extend_from_slice(&part.data);
        self.left = left;
        if left > 0 {
            return Ok(None);
        }
        let frame = F::decode(std::mem::take(&mut self.bytes).as_slice())
            .map_err(|error| Malformed::new("part", error, "parts of an encoded frame"))?;
        match frame.into_part() {
            Ok(_) => Err(Malformed::new("part", "parts of a part", "parts of a whole frame")),
            Err(whole) => Ok(Some(whole)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Payload;
    use crate::protocol::ledger::{Record, Stamped};
    use crate::protocol::message::Up;
    use crate::wire::tests::samples::Samples;

    fn upload(numbers: usize) -> v1::FollowerFrame {
        let mut samples = Samples::new(1);
        let payload = Payload::Max((0..numbers).map(|_| samples.number() as i64).collect());
        let record = Record::Payload(samples.job_key(), payload);
        (&Up::Upload(vec![Stamped { stamp: samples.stamp(), record }])).into()
    }

    #[test]
    fn a_small_frame_travels_as_it_is() {
        let frame = upload(100);
        let cut: Vec<_> = Cut::new(frame.clone()).expect("small enough").collect();
        assert_eq!(cut, std::slice::from_ref(&frame));
        assert_eq!(Joined::default().take(frame.clone()), Ok(Some(frame)));
    }

    #[test]
    fn a_large_frame_travels_in_parts_of_64_kib_and_arrives_whole() {
        let mut joined = Joined::default();
        for numbers in [8_200, 100_000, 8_125 * 3] {
            let frame = upload(numbers);
            let parts: Vec<_> = Cut::new(frame.clone()).expect("small enough").collect();
            assert!(parts.len() > 1);
            assert!(parts.iter().all(|part| part.encoded_len() <= LARGEST_FRAME));
            let mut arrived: Vec<_> =
                parts.into_iter().map(|part| joined.take(part).expect("parts that fit")).collect();
            assert_eq!(arrived.pop(), Some(Some(frame)));
            assert!(arrived.iter().all(Option::is_none));
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let part = |len: usize, left: u32| v1::FollowerFrame::of_part(v1::Part { data: vec![0; len], left });
        let refused = |frames: Vec<v1::FollowerFrame>| {
            let mut joined = Joined::default();
            frames
                .into_iter()
                .map(|frame| joined.take(frame))
                .last()
                .expect("a frame")
                .expect_err("a refusal")
                .to_string()
        };
        assert_eq!(refused(vec![part(0, 5)]), "part is 0 bytes, 5 left; allowed is 1 byte or more");
        assert_eq!(refused(vec![part(9, 5), part(3, 1)]), "part is 3 bytes, 1 left; allowed is what is left of 5");
        assert_eq!(refused(vec![part(9, 5), part(0, 5)]), "part is 0 bytes, 5 left; allowed is what is left of 5");
        assert_eq!(refused(vec![part(9, 5), upload(1)]), "frame is a whole frame amid parts; allowed is 5 bytes more");
        assert!(refused(vec![part(9, u32::MAX)]).starts_with("frame is 4294967304 bytes in all; allowed is at most "));
        assert!(refused(vec![upload(9_000)]).ends_with("allowed is at most 65536, more in parts"));
        assert!(refused(vec![part(9, 0)]).contains("allowed is parts of an encoded frame"));
        let nested = part(1, 0).encode_to_vec();
        let nested = v1::FollowerFrame::of_part(v1::Part { data: nested, left: 0 });
        assert_eq!(refused(vec![nested]), "part is parts of a part; allowed is parts of a whole frame");
    }
}
