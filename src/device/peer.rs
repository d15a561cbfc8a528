//! Whether copies between two cards arrive.

use super::{Arena, DeviceError, MemoryKind, Queue};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lengths of the copies that are compared: single bytes, odd ones, and one that takes several packets.
const SIZES: [u64; 6] = [1, 3, 64, 4097, 65_535, 1 << 20];

/// Where copies begin, so that they are not all aligned.
const OFFSETS: [u64; 2] = [0, 5];

/// Whether data that the card of `to` copies from the card of `from` arrives unchanged. A driver's word for it is not
/// enough, so known bytes are copied and compared. False if the cards have no way, or if a copy fails or is wrong.
///
/// The copies run on queues of their own, so that one that fails poisons neither `to` nor `from`.
///
/// # Errors
/// No memory or no queue for the test, or a device that fails in something else than a copy between the cards.
pub fn peer_works(to: &Queue, from: &Queue) -> Result<bool, DeviceError> {
    let (to, from) = (to.card(), from.card());
    if !to.may_copy_from(from)? {
        return Ok(false);
    }
    let bytes = SIZES.iter().chain(&OFFSETS).max().expect("there are sizes") + 64;
    let src = Arena::new(from, bytes, MemoryKind::Device)?;
    let dst = Arena::new(to, bytes, MemoryKind::Device)?;
    let (to, from) = (Queue::new(to)?, Queue::new(from)?);
    for (size, offset) in SIZES.iter().flat_map(|size| OFFSETS.map(|offset| (*size, offset))) {
        let sent = fresh_bytes(bytes as usize);
        // Where nothing is copied to, and if nothing is copied, every byte differs from what was sent.
        let before: Vec<u8> = sent.iter().map(|byte| !byte).collect();
        from.upload(&src.whole(), &sent)?;
        to.upload(&dst.whole(), &before)?;
        let copied = to.copy_from_peer(&dst.span(offset, size)?, &src.span(offset, size)?).and_then(|()| to.wait());
        if copied.is_err() {
            return Ok(false);
        }
        let mut got = vec![0; bytes as usize];
        to.download(&mut got, &dst.whole())?;
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
