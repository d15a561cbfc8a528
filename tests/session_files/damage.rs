//! Files that were cut, flipped, or say what is not so: refused by name, and nothing is allocated for what they say.

use std::fs;

use bankshot::plan::Extent;
use bankshot::state::{Extras, Layout, Piece, SectionKind};
use tempfile::tempdir;

use super::support::{CONTEXT, Part, Parts, Sessions, ids, image, number, path, text_of};

/// A whole session "a", a delta "b" to it, and the file of one of them.
struct Case {
    it: Sessions,
    file: Vec<u8>,
    name: &'static str,
    _dir: tempfile::TempDir,
}

impl Case {
    fn new(name: &'static str, compress: bool) -> Case {
        let dir = tempdir().unwrap();
        let it = Sessions::open(dir.path());
        let tokens = ids(5, 40);
        let save = |name: &str, count: usize, from, parent| {
            let (image, text) = (image(&it.layout, &tokens[..count], from, true), text_of(&tokens[..2]));
            let extras = Extras { text: &text, notes: Some(b"notes"), compress, ..Extras::default() };
            it.store.save(name, &it.identity, &it.layout, &image, extras, parent).unwrap().id
        };
        let a = save("a", 6, 0, None);
        save("b", 40, 6, Some(a));
        let file = fs::read(path(&it.store, name)).unwrap();
        Case { it, file, name, _dir: dir }
    }

    fn parts(&self) -> Parts {
        Parts::read(&self.file)
    }

    /// What is said when the file has these bytes; "b" needs it either way.
    #[track_caller]
    fn refused(&self, bytes: &[u8]) -> String {
        fs::write(path(&self.it.store, self.name), bytes).unwrap();
        let error = self.it.load("b").map(|_| ()).unwrap_err().to_string();
        let own = self.it.load(self.name).map(|_| ()).unwrap_err().to_string();
        assert!(self.name == "a" || own == error);
        own
    }

    #[track_caller]
    fn reject(&self, bytes: &[u8], says: &[&str]) {
        let error = self.refused(bytes);
        assert!(says.iter().all(|part| error.contains(part)), "expected {says:?} in: {error}");
        assert!(error.contains(&format!("{}.bks", self.name)), "{error}");
        let entry = self.it.store.list().unwrap().into_iter().find(|entry| entry.name == self.name).unwrap();
        if let Ok(info) = entry.info {
            // What the headers do not show needs the model, or every byte.
            assert_eq!(info.name, self.name);
        }
    }
}

fn title(part: &Part) -> String {
    let kind = SectionKind::ALL.into_iter().find(|kind| u64::from(kind.number()) == part.kind()).unwrap();
    match kind {
        SectionKind::Piece(kind) => format!("{} of layer {}", kind.name(), part.layer()),
        _ => kind.name().to_owned(),
    }
}

#[test]
fn the_second_writer_makes_the_same_files() {
    for name in ["a", "b"] {
        for compress in [false, true] {
            let case = Case::new(name, compress);
            assert_eq!(case.parts().write(), case.file);
            assert_eq!(case.parts().sections.len(), 4 + 8);
        }
    }
}

#[test]
fn every_flipped_byte_is_refused() {
    for (name, compress) in [("a", false), ("b", true)] {
        let case = Case::new(name, compress);
        for at in 0..case.file.len() {
            for mask in [1, 0x80, 0xff] {
                let mut bytes = case.file.clone();
                bytes[at] ^= mask;
                case.refused(&bytes);
                if mask == 1 {
                    assert!(case.it.store.inspect(name, true).is_err(), "byte {at}");
                }
            }
        }
        fs::write(path(&case.it.store, name), &case.file).unwrap();
        case.it.load("b").unwrap();
    }
}

#[test]
fn flipped_bytes_of_sections_are_named() {
    let case = Case::new("b", true);
    let header_bytes = 48 + number(&case.file[12..16]) as usize;
    let mut at = header_bytes;
    for part in case.parts().sections {
        at += 56;
        if !part.stored.is_empty() {
            let mut bytes = case.file.clone();
            bytes[at + part.stored.len() / 2] ^= 4;
            case.reject(&bytes, &[&format!("{}: checksum: expected", title(&part))]);
        }
        at += part.stored.len();
    }
    let mut bytes = case.file.clone();
    bytes[100] ^= 1;
    case.reject(&bytes, &["header checksum: expected"]);
    let mut bytes = case.file.clone();
    bytes[header_bytes + 30] ^= 1;
    case.reject(&bytes, &["structure checksum: expected"]);
}

#[test]
fn every_cut_is_refused() {
    for name in ["a", "b"] {
        let case = Case::new(name, false);
        for bytes in 0..case.file.len() {
            case.refused(&case.file[..bytes]);
            assert!(case.it.store.inspect(name, false).is_err(), "{bytes} bytes");
        }
        case.reject(&[&case.file[..], &[0]].concat(), &["end mark: expected 56 bytes, found 57 bytes"]);
    }
}

#[test]
fn every_missing_section_is_named() {
    for name in ["a", "b"] {
        let case = Case::new(name, false);
        for at in 0..case.parts().sections.len() {
            let mut parts = case.parts();
            let part = parts.sections.remove(at);
            match title(&part).as_str() {
                // It need not be there.
                "notes" => {
                    fs::write(path(&case.it.store, name), parts.write()).unwrap();
                    assert_eq!(case.it.load(name).unwrap().notes, None);
                }
                // Neither need these, but they are of the snapshot.
                "logits" => {
                    fs::write(path(&case.it.store, name), parts.write()).unwrap();
                    let error = case.it.load(name).unwrap_err().to_string();
                    assert!(error.contains("snapshot id: expected"), "{error}");
                }
                title => case.reject(&parts.write(), &[&format!("section {title}: expected one, found none")]),
            }
            let mut twice = case.parts();
            twice.sections.insert(at, part.clone());
            case.reject(&twice.write(), &[&title(&part), "expected once, and before"]);
            if at > 0 {
                let mut turned = case.parts();
                turned.sections.swap(at - 1, at);
                case.reject(&turned.write(), &["expected once, and before"]);
            }
        }
        let mut more = case.parts();
        let mut part = more.sections.last().unwrap().clone();
        part.head[4] += 1;
        more.sections.push(part);
        case.reject(&more.write(), &["section raw index keys of layer 3: expected none, found one"]);
    }
}

#[test]
fn fields_that_lie_are_named() {
    let case = Case::new("b", false);
    let huge = 1u64 << 63;
    // Header: offset of the field, its bytes, what is said.
    let zeros = [0; 32];
    for (offset, bytes, says) in [
        (0, &[1; 32][..], "snapshot id: expected 0101"),
        (32, &zeros, "from: expected 0 without parent, found 6"),
        (64, &huge.to_le_bytes(), "ids: raw bytes: expected 36893488147419103232, found 160"),
        (64, &41u64.to_le_bytes(), "ids: raw bytes: expected 164, found 160"),
        (72, &0u64.to_le_bytes(), "from: expected 1 to below 40, found 0"),
        (72, &40u64.to_le_bytes(), "from: expected 1 to below 40, found 40"),
        (72, &huge.to_le_bytes(), "from: expected 1 to below 40, found 9223372036854775808"),
        (92, &3u32.to_le_bytes(), "header: expected its end"),
        (92, &8u32.to_le_bytes(), "identity fields: expected whole texts, found no field 7"),
        (92, &u32::MAX.to_le_bytes(), "identity fields: expected whole texts, found no field"),
        (96, &u16::MAX.to_le_bytes(), "identity fields: expected whole texts, found no field 0"),
        (98, &[0xff; 2], "identity fields: expected whole texts, found no field 0"),
        (100, &[0xff], "identity fields: expected whole texts, found no field 0"),
    ] {
        let mut parts = case.parts();
        parts.header[offset..offset + bytes.len()].copy_from_slice(bytes);
        case.reject(&parts.write(), &[says]);
    }
    // A parent whose position is another: the chain does not lead to a whole session.
    let mut parts = case.parts();
    parts.header[72] = 5;
    let error = case.refused(&parts.write());
    assert!(error.contains("position: expected 5, found 6 in a"), "{error}");

    let mut parts = case.parts();
    for (count, says) in
        [(u32::MAX, "sections: expected at most 65536"), (13, "section 12: kind"), (11, "end mark: expected")]
    {
        parts.header[88..92].copy_from_slice(&count.to_le_bytes());
        let header = parts.header.clone();
        // The count has to be that of the header, which is then right by all checksums.
        case.reject(&parts.write_with(&header), &[says]);
    }
    let parts = case.parts();
    let mut bytes = parts.write();
    bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    case.reject(&bytes, &["header bytes: expected 96 to 65536, found 4294967295"]);
    bytes[12..16].copy_from_slice(&60_000u32.to_le_bytes());
    case.reject(&bytes, &["header: expected a whole one"]);
    for (at, byte, says) in [(8, 2, "version: expected 1, found 2"), (0, b'X', "start of a saved session")] {
        let mut bytes = parts.write();
        bytes[at] = byte;
        case.reject(&bytes, &[says]);
    }
}

#[test]
fn section_headers_that_lie_are_named() {
    let case = Case::new("b", true);
    let (huge, sections) = (1u64 << 63, case.parts().sections);
    for (at, part) in sections.iter().enumerate() {
        let title = title(part);
        let is_piece = part.kind() >= 16;
        let lie = |offset: usize, bytes: &[u8], says: &str| {
            let mut parts = case.parts();
            parts.sections[at].head[offset..offset + bytes.len()].copy_from_slice(bytes);
            case.reject(&parts.write(), &[says]);
        };
        lie(0, &99u16.to_le_bytes(), &format!("section {at}: kind: expected one of 1, 2, 3, 4, 16, 17, 18"));
        lie(2, &[if is_piece { 0 } else { 1 }], &format!("{title}: extent"));
        lie(2, &[3], &format!("{title}: extent"));
        lie(3, &[4], &format!("{title}: encoding"));
        if !is_piece {
            lie(3, &[1], &format!("{title}: encoding"));
            lie(4, &[1], "layer: expected 0, found 1");
        }
        lie(8, &huge.to_le_bytes(), &format!("{title}: stored bytes: expected"));
        if part.head[3] == 0 {
            lie(16, &huge.to_le_bytes(), &format!("{title}: stored bytes: expected"));
            lie(8, &[huge.to_le_bytes(), huge.to_le_bytes()].concat(), "stored bytes: expected at most");
        } else {
            lie(16, &huge.to_le_bytes(), &format!("{title}: raw bytes: expected"));
        }
    }
    assert!(sections.iter().any(|part| part.head[3] == 2), "none is compressed");
}

#[test]
fn compressed_bytes_that_lie_are_named() {
    let case = Case::new("b", true);
    let at = case.parts().sections.iter().position(|part| part.head[3] == 2).unwrap();
    let title = title(&case.parts().sections[at]);
    let raw = number(&case.parts().sections[at].head[16..24]);
    for bytes in [vec![0; raw as usize - 1], vec![0; raw as usize + 1], vec![0; 100 << 20], Vec::new()] {
        let mut parts = case.parts();
        let part = &mut parts.sections[at];
        part.stored = zstd::bulk::compress(&bytes, 1).unwrap();
        if part.stored.len() as u64 >= raw {
            continue;
        }
        part.head[8..16].copy_from_slice(&(part.stored.len() as u64).to_le_bytes());
        case.reject(&parts.write(), &[&format!("{title}: expected {raw} bytes, found")]);
    }
    let mut parts = case.parts();
    parts.sections[at].stored.fill(0xaa);
    case.reject(&parts.write(), &[&format!("{title}: expected {raw} bytes, found")]);
}

#[test]
fn nothing_is_allocated_for_what_does_not_fit() {
    // A file and a layout that agree on more bytes than any host has.
    let case = Case::new("a", true);
    let bytes = 1u64 << 60;
    let mut parts = case.parts();
    let at = parts.sections.iter().position(|part| part.kind() == 17).unwrap();
    let part = &mut parts.sections[at];
    part.stored = zstd::bulk::compress(&vec![0; 1 << 20], 1).unwrap();
    part.head[3] = 1;
    part.head[8..16].copy_from_slice(&(part.stored.len() as u64).to_le_bytes());
    part.head[16..24].copy_from_slice(&bytes.to_le_bytes());
    let layer = part.layer() as usize;
    fs::write(path(&case.it.store, "a"), parts.write()).unwrap();
    let large = |piece: &Piece| match piece.extent {
        Extent::Fixed { .. } if piece.layer == layer && piece.kind.name() == "delta net matrices" => {
            Piece { extent: Extent::Fixed { bytes }, ..*piece }
        }
        _ => *piece,
    };
    let layout = Layout::new(case.it.layout.pieces().iter().map(large).collect());
    let error = case.it.store.load("a", &case.it.identity, &layout, CONTEXT).unwrap_err().to_string();
    assert!(error.starts_with("session a: host memory: expected 23058430092136"), "{error}");
    // Neither when rows are given to a delta.
    let case = Case::new("a", true);
    let mut parts = case.parts();
    let at = parts.sections.iter().position(|part| part.kind() == 18).unwrap();
    let part = &mut parts.sections[at];
    part.head[3] = 1;
    part.stored = vec![1; 20];
    part.head[8..16].copy_from_slice(&20u64.to_le_bytes());
    part.head[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    fs::write(path(&case.it.store, "a"), parts.write()).unwrap();
    let error = case.it.store.delete("a", true).unwrap_err().to_string();
    assert!(error.starts_with("session b: host memory: expected 18446744073709551615"), "{error}");
}

#[test]
fn text_has_to_be_text() {
    let case = Case::new("b", false);
    let mut parts = case.parts();
    parts.sections[1].stored[0] = 0xff;
    case.reject(&parts.write(), &["text: expected UTF-8, found invalid utf-8"]);
    assert_eq!(case.it.store.inspect("b", true).unwrap().text_start, "");
}

#[test]
fn parents_that_are_not_the_beginning_are_named() {
    let case = Case::new("a", false);
    let mut parts = case.parts();
    parts.sections[0].stored[9] ^= 1;
    fs::write(path(&case.it.store, "a"), parts.write()).unwrap();
    let error = case.it.load("b").unwrap_err().to_string();
    assert!(error.contains("a.bks': ids: expected the first 6 of"), "{error}");
    let error = case.it.store.delete("a", true).unwrap_err().to_string();
    assert!(error.contains("b.bks': ids: expected 6 of"), "{error}");
    // A parent of another identity.
    let mut parts = case.parts();
    let at = parts.header.windows(3).position(|bytes| bytes == b"f16").unwrap();
    parts.header[at + 1] = b'3';
    fs::write(path(&case.it.store, "a"), parts.write()).unwrap();
    for error in [case.it.load("b").map(|_| ()).unwrap_err(), case.it.store.delete("a", true).unwrap_err()] {
        let error = error.to_string();
        assert!(
            error.contains("cache: expected f16, found f36") || error.contains("cache: expected f36, found f16"),
            "{error}"
        );
    }
}

#[test]
fn circles_are_refused() {
    let case = Case::new("a", false);
    // "a" says that it is a delta of "b", which is one to "a".
    let b = Parts::read(&fs::read(path(&case.it.store, "b")).unwrap());
    let mut parts = case.parts();
    parts.header[32..64].copy_from_slice(&b.header[..32]);
    parts.header[72] = 5;
    fs::write(path(&case.it.store, "a"), parts.write()).unwrap();
    for name in ["a", "b"] {
        let error = case.it.load(name).unwrap_err().to_string();
        assert!(
            error.contains("session a: parent") && error.contains("position: expected 5, found 40 in b"),
            "{error}"
        );
        assert!(case.it.store.inspect(name, true).unwrap().broken.is_some());
    }
    let own = parts.header[..32].to_vec();
    parts.header[32..64].copy_from_slice(&own);
    fs::write(path(&case.it.store, "a"), parts.write()).unwrap();
    let error = case.it.load("a").unwrap_err().to_string();
    assert!(error.contains("position: expected 5, found 6 in a"), "{error}");
    case.it.store.delete("b", false).unwrap();
    case.it.store.delete("a", false).unwrap();
}
