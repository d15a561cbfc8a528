//! Whether copies between two cards arrive.

use super::{Arena, DeviceError, MemoryKind, Queue};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lengths of the copies that are compared: single bytes, odd ones, and one that takes several packets.
const SIZES: [u64; 6] = [1, 3, 64, 4097, 65_535, 1 << 20];

/// Where copies begin, so that they are not all aligned.
const OFFSETS: [u64; 2] = [0, 5];

/// What failed in a trial of copies between two cards, apart from the copies, and on which of them.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PeerError {
    #[error("on the card that is copied to: {0}")]
    To(DeviceError),
    #[error("on the card that is copied from: {0}")]
    From(DeviceError),
}

/// Whether data that the card of `to` copies from the card of `from` arrives unchanged. A driver's word for it is not
/// enough, so known bytes are copied and compared. False if the cards have no way, or if a copy fails or is wrong.
///
/// The copies run on queues of their own, so that one that fails poisons neither `to` nor `from`.
///
/// # Errors
/// No memory or no queue for the test, or a device that fails in something else than a copy between the cards.
pub fn peer_works(to: &Queue, from: &Queue) -> Result<bool, PeerError> {
    let (to, from) = (to.card(), from.card());
    if !to.may_copy_from(from).map_err(PeerError::To)? {
        return Ok(false);
    }
    let bytes = SIZES.iter().chain(&OFFSETS).max().expect("there are sizes") + 64;
    let src = Arena::new(from, bytes, MemoryKind::Device).map_err(PeerError::From)?;
    let dst = Arena::new(to, bytes, MemoryKind::Device).map_err(PeerError::To)?;
    let (to, from) = (Queue::new(to).map_err(PeerError::To)?, Queue::new(from).map_err(PeerError::From)?);
    for (size, offset) in SIZES.iter().flat_map(|size| OFFSETS.map(|offset| (*size, offset))) {
        let sent = fresh_bytes(bytes as usize);
        // Where nothing is copied to, and if nothing is copied, every byte differs from what was sent.
        let before: Vec<u8> = sent.iter().map(|byte| !byte).collect();
        from.upload(&src.whole(), &sent).map_err(PeerError::From)?;
        to.upload(&dst.whole(), &before).map_err(PeerError::To)?;
        let source = src.span(offset, size).map_err(PeerError::From)?;
        let target = dst.span(offset, size).map_err(PeerError::To)?;
        let copied = to.copy_from_peer(&target, &source).and_then(|()| to.wait());
        if copied.is_err() {
            return Ok(false);
        }
        let mut got = vec![0; bytes as usize];
        to.download(&mut got, &dst.whole()).map_err(PeerError::To)?;
        let (from, to) = (offset as usize, (offset + size) as usize);
        if got[from..to] != sent[from..to] || got[..from] != before[..from] || got[to..] != before[to..] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes that no earlier call gave: what an earlier copy left behind must not pass for this one's.
fn fresh_bytes(n: usize) -> Vec<u8> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut state = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut bytes = Vec::with_capacity(n + 8);
    while bytes.len() < n {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend((word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(n);
    bytes
}
