//! The file of a saved session, read and written; whether it is whole, and its sections' bytes.

use std::path::Path;

use super::SessionError;
use super::codec::{self, Encoding};
use super::disk::{ReadFile, WriteFile};
use super::format::{
    END, END_BYTES, END_MAGIC, Header, NOTES_BYTES_MAX, Record, SECTION, SECTION_BYTES, SECTIONS_MAX, Section,
    SectionKind, check_hash, section,
};

/// Bytes that are read and hashed at once.
const BLOCK_BYTES: usize = 1 << 20;

/// A file whose header, section headers and end belong together. The sections' bytes are not verified yet.
pub(super) struct SavedFile {
    pub file: Box<dyn ReadFile>,
    pub path: Box<Path>,
    pub header: Header,
    pub sections: Vec<Section>,
    pub bytes: u64,
}

impl SavedFile {
    pub fn read(file: Box<dyn ReadFile>, path: &Path) -> Result<SavedFile, SessionError> {
        let io = |cause| SessionError::io("read", path, cause);
        let bytes = file.bytes().map_err(io)?;
        let (header, start) = Header::read(&*file, path)?;
        if header.sections > SECTIONS_MAX {
            return Err(SessionError::damaged(path, "sections", format!("at most {SECTIONS_MAX}"), header.sections));
        }
        let mut hash = blake3::Hasher::new();
        hash.update(&start);
        let (mut at, mut sections) = (start.len() as u64, Vec::<Section>::new());
        for index in 0..header.sections {
            let mut record = Record::new(&SECTION);
            if bytes - at < SECTION_BYTES as u64 {
                let found = format!("{} bytes before the end of the file", bytes - at);
                return Err(SessionError::damaged(path, format!("section {index}"), "a whole header", found));
            }
            file.read(at, &mut record.bytes).map_err(io)?;
            hash.update(&record.bytes);
            at += SECTION_BYTES as u64;
            let section = section(&record, index, at, path)?;
            if section.stored_bytes > bytes - at {
                let what = format!("{}: stored bytes", section.title());
                let expected = format!("at most {}, which the file has left", bytes - at);
                return Err(SessionError::damaged(path, what, expected, section.stored_bytes));
            }
            if let Some(before) = sections.last().filter(|before| before.rank() >= section.rank()) {
                let expected = format!("once, and before {}", before.title());
                return Err(SessionError::damaged(path, section.title(), expected, "it there"));
            }
            at += section.stored_bytes;
            sections.push(section);
        }
        let mut end = Record::new(&END);
        if bytes - at != END_BYTES as u64 {
            let expected = format!("{END_BYTES} bytes");
            return Err(SessionError::damaged(path, "end mark", expected, format!("{} bytes", bytes - at)));
        }
        file.read(at, &mut end.bytes).map_err(io)?;
        let checksum = end.range("structure checksum").start;
        hash.update(&end.bytes[..checksum]);
        check_hash(path, "structure checksum", end.hash("structure checksum"), *hash.finalize().as_bytes())?;
        let numbers = [("sections", u64::from(header.sections)), ("reserved", 0), ("file bytes", bytes)];
        if end.bytes("end magic") != END_MAGIC {
            return Err(SessionError::damaged(path, "end mark", "\"BSessEnd\"", "something else"));
        }
        for (name, expected) in numbers {
            if end.number(name) != expected {
                return Err(SessionError::damaged(path, format!("end mark: {name}"), expected, end.number(name)));
            }
        }
        let saved = SavedFile { file, path: path.into(), header, sections, bytes };
        saved.check_lengths()?;
        Ok(saved)
    }

    /// The lengths that follow from the header alone.
    fn check_lengths(&self) -> Result<(), SessionError> {
        let ids = self.need(SectionKind::Ids)?;
        let expected = u128::from(self.header.position) * 4;
        if u128::from(ids.raw_bytes) != expected {
            return Err(SessionError::damaged(&self.path, "ids: raw bytes", expected, ids.raw_bytes));
        }
        self.need(SectionKind::Text)?;
        if let Some(notes) = self.find(SectionKind::Notes).filter(|notes| notes.raw_bytes > NOTES_BYTES_MAX as u64) {
            let expected = format!("at most {NOTES_BYTES_MAX}");
            return Err(SessionError::damaged(&self.path, "notes: raw bytes", expected, notes.raw_bytes));
        }
        if let Some(logits) = self.find(SectionKind::Logits).filter(|logits| logits.raw_bytes % 4 != 0) {
            return Err(SessionError::damaged(&self.path, "logits: raw bytes", "a multiple of 4", logits.raw_bytes));
        }
        Ok(())
    }

    pub fn find(&self, kind: SectionKind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    pub fn need(&self, kind: SectionKind) -> Result<&Section, SessionError> {
        let missing = || SessionError::damaged(&self.path, format!("section {}", kind.name()), "one", "none");
        self.find(kind).ok_or_else(missing)
    }

    /// Fills `to`, which has the section's raw bytes, and compares the checksum.
    pub fn fill(&self, section: &Section, to: &mut [u8]) -> Result<(), SessionError> {
        if section.encoding == Encoding::Raw {
            return self.stored(section, to);
        }
        let mut stored = vec![0; section.stored_bytes as usize];
        self.stored(section, &mut stored)?;
        let expected = format!("{} bytes", to.len());
        codec::decode(&stored, section.encoding, to)
            .map_err(|found| SessionError::damaged(&self.path, section.title(), expected, found))
    }

    /// Fills `to` with the stored bytes and compares the checksum.
    pub fn stored(&self, section: &Section, to: &mut [u8]) -> Result<(), SessionError> {
        let (mut hash, mut at) = (blake3::Hasher::new(), section.offset);
        for block in to.chunks_mut(BLOCK_BYTES) {
            self.file.read(at, block).map_err(|cause| SessionError::io("read", &self.path, cause))?;
            hash.update(block);
            at += block.len() as u64;
        }
        self.check(section, &hash)
    }

    /// The bytes of a section that is stored as it is.
    pub fn bytes(&self, section: &Section) -> Result<Vec<u8>, SessionError> {
        let mut bytes = vec![0; section.raw_bytes as usize];
        self.fill(section, &mut bytes)?;
        Ok(bytes)
    }

    pub fn ids(&self) -> Result<Vec<u32>, SessionError> {
        let bytes = self.bytes(self.need(SectionKind::Ids)?)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id)).collect())
    }

    /// Compares a section's checksum, and keeps nothing of it.
    pub fn verify(&self, section: &Section) -> Result<(), SessionError> {
        let (mut hash, mut at, mut left) = (blake3::Hasher::new(), section.offset, section.stored_bytes);
        let mut block = vec![0; BLOCK_BYTES.min(left as usize)];
        while left > 0 {
            let bytes = left.min(block.len() as u64) as usize;
            let part = &mut block[..bytes];
            self.file.read(at, part).map_err(|cause| SessionError::io("read", &self.path, cause))?;
            hash.update(part);
            (at, left) = (at + bytes as u64, left - bytes as u64);
        }
        self.check(section, &hash)
    }

    /// Compares all checksums.
    pub fn verify_all(&self) -> Result<(), SessionError> {
        self.sections.iter().try_for_each(|section| self.verify(section))
    }

    fn check(&self, section: &Section, hash: &blake3::Hasher) -> Result<(), SessionError> {
        let what = format!("{}: checksum", section.title());
        check_hash(&self.path, &what, section.checksum, *hash.finalize().as_bytes())
    }
}

/// Writes a file section by section.
pub(super) struct Writer<'a> {
    file: &'a mut dyn WriteFile,
    hash: blake3::Hasher,
    sections: u32,
    pub bytes: u64,
}

impl<'a> Writer<'a> {
    /// Begins with what [`Header::encode`] gave.
    pub fn new(file: &'a mut dyn WriteFile, header: &[u8]) -> std::io::Result<Writer<'a>> {
        let mut writer = Writer { file, hash: blake3::Hasher::new(), sections: 0, bytes: 0 };
        writer.structure(header)?;
        Ok(writer)
    }

    fn structure(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write(bytes)
    }

    /// A section's raw bytes, to be stored in this way if that is shorter.
    pub fn section(&mut self, mut section: Section, bytes: &[u8], wanted: Encoding) -> std::io::Result<()> {
        let (encoding, stored) = codec::encode(bytes, wanted);
        section.encoding = encoding;
        section.raw_bytes = bytes.len() as u64;
        section.stored_bytes = stored.len() as u64;
        section.checksum = *blake3::hash(&stored).as_bytes();
        self.stored(&section, &stored)
    }

    /// A section whose stored bytes are known.
    pub fn stored(&mut self, section: &Section, stored: &[u8]) -> std::io::Result<()> {
        self.structure(&section.encode())?;
        self.sections += 1;
        self.bytes += stored.len() as u64;
        self.file.write(stored)
    }

    /// The end mark. Gives the bytes of the file.
    pub fn finish(mut self) -> std::io::Result<u64> {
        let mut end = Record::new(&END);
        end.set("end magic", &END_MAGIC);
        end.set_number("sections", self.sections.into());
        end.set_number("file bytes", self.bytes + END_BYTES as u64);
        let checksum = end.range("structure checksum").start;
        self.hash.update(&end.bytes[..checksum]);
        let hash = *self.hash.finalize().as_bytes();
        end.set("structure checksum", &hash);
        self.file.write(&end.bytes)?;
        self.file.sync()?;
        Ok(self.bytes + END_BYTES as u64)
    }
}
