//! How the bytes of a section are stored: as they are, or compressed.

use std::borrow::Cow;

/// Fast, and higher levels gain next to nothing on numbers.
const LEVEL: i32 = 1;

/// How a section's bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Raw,
    /// Compressed by zstd.
    Zstd,
    /// All first bytes of numbers of two bytes, then all second ones, compressed by zstd.
    Zstd2,
    /// The same of numbers of four bytes.
    Zstd4,
}

impl Encoding {
    pub const ALL: [Encoding; 4] = [Encoding::Raw, Encoding::Zstd, Encoding::Zstd2, Encoding::Zstd4];

    /// As files have it.
    pub const fn number(self) -> u8 {
        match self {
            Encoding::Raw => 0,
            Encoding::Zstd => 1,
            Encoding::Zstd2 => 2,
            Encoding::Zstd4 => 3,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Raw => "raw",
            Encoding::Zstd => "zstd",
            Encoding::Zstd2 => "zstd of 2-byte numbers",
            Encoding::Zstd4 => "zstd of 4-byte numbers",
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.number() == number)
    }

    /// Bytes of a number whose bytes are kept apart.
    const fn width(self) -> usize {
        match self {
            Encoding::Raw | Encoding::Zstd => 1,
            Encoding::Zstd2 => 2,
            Encoding::Zstd4 => 4,
        }
    }
}

/// The bytes as they are stored. What does not get shorter stays as it is, so that no stored section is longer than its bytes.
pub(super) fn encode(bytes: &[u8], wanted: Encoding) -> (Encoding, Cow<'_, [u8]>) {
    let raw = (Encoding::Raw, Cow::Borrowed(bytes));
    let wanted = if bytes.len().is_multiple_of(wanted.width()) { wanted } else { Encoding::Zstd };
    if wanted == Encoding::Raw || bytes.is_empty() {
        return raw;
    }
    let apart = match wanted.width() {
        1 => Cow::Borrowed(bytes),
        width => Cow::Owned(apart(bytes, width)),
    };
    match zstd::bulk::compress(&apart, LEVEL) {
        Ok(stored) if stored.len() < bytes.len() => (wanted, Cow::Owned(stored)),
        _ => raw,
    }
}

/// Fills `to` from stored bytes; says what is wrong if they are not the bytes of that many.
pub(super) fn decode(stored: &[u8], encoding: Encoding, to: &mut [u8]) -> Result<(), String> {
    let width = encoding.width();
    let decompress = |to: &mut [u8]| {
        // It writes no further than the buffer.
        let found = zstd::bulk::decompress_to_buffer(stored, to).map_err(|error| error.to_string())?;
        if found == to.len() { Ok(()) } else { Err(format!("{found} bytes")) }
    };
    match encoding {
        Encoding::Raw if stored.len() == to.len() => to.copy_from_slice(stored),
        Encoding::Raw => return Err(format!("{} bytes", stored.len())),
        Encoding::Zstd => decompress(to)?,
        Encoding::Zstd2 | Encoding::Zstd4 if !to.len().is_multiple_of(width) => {
            return Err(format!("numbers of {width} bytes"));
        }
        Encoding::Zstd2 | Encoding::Zstd4 => {
            let mut planes = vec![0; to.len()];
            decompress(&mut planes)?;
            let numbers = to.len() / width;
            for (byte, plane) in planes.chunks_exact(numbers.max(1)).enumerate() {
                to.iter_mut().skip(byte).step_by(width).zip(plane).for_each(|(to, from)| *to = *from);
            }
        }
    }
    Ok(())
}

/// All first bytes of numbers, then all second ones, and so on.
fn apart(bytes: &[u8], width: usize) -> Vec<u8> {
    let mut planes = Vec::with_capacity(bytes.len());
    for byte in 0..width {
        planes.extend(bytes.iter().skip(byte).step_by(width));
    }
    planes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_numbers_are_kept_apart_and_come_together() {
        assert_eq!(apart(&[1, 2, 3, 4, 5, 6, 7, 8], 4), [1, 5, 2, 6, 3, 7, 4, 8]);
        assert_eq!(apart(&[1, 2, 3, 4, 5, 6], 2), [1, 3, 5, 2, 4, 6]);
        let bytes: Vec<u8> = (0..4096u32).flat_map(|i| (i as f32 * 0.25).to_le_bytes()).collect();
        for wanted in Encoding::ALL {
            let (encoding, stored) = encode(&bytes, wanted);
            assert_eq!(encoding, wanted);
            let mut back = vec![0; bytes.len()];
            decode(&stored, encoding, &mut back).unwrap();
            assert_eq!(back, bytes);
            for wrong in [bytes.len() - 4, bytes.len() + 4, bytes.len() + 1, 0] {
                assert!(decode(&stored, encoding, &mut vec![0; wrong]).is_err(), "{wanted:?} {wrong}");
            }
        }
    }

    #[test]
    fn what_does_not_get_shorter_stays_as_it_is() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(encode(&bytes, Encoding::Zstd), (Encoding::Raw, Cow::Borrowed(&bytes[..])));
        assert_eq!(encode(&[0; 1025], Encoding::Zstd4).0, Encoding::Zstd);
        assert_eq!(encode(&[], Encoding::Zstd2).0, Encoding::Raw);
    }
}
