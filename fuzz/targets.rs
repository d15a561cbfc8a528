//! What the fuzz targets do with their input. `tests/fuzz_corpus.rs` runs the same over the stored corpus.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bankshot::gguf::{GgufError, GgufFile};
use bankshot::load::vocab_source;
use bankshot::model::{Architecture, Bound, Census, Spec};
use bankshot::text::{ChatTemplate, Detokenizer, Message, RenderOptions, TextError, Tokenizer, VocabSource};
use tiny_model::Tiny;
use tokenizers::NormalizedString;

#[path = "../tests/support/gguf_writer.rs"]
pub mod gguf_writer;
#[path = "../tests/support/shapes.rs"]
mod shapes;
#[path = "../tests/support/tiny_model.rs"]
pub mod tiny_model;

const DEMO_TEMPLATE: &str = include_str!("../tests/data/tokenizer/chat_template.jinja");
/// Ends a field of an input; it occurs in no UTF-8 text.
pub const FIELD_END: u8 = 0xff;
/// Length of a file that has a directory of the input's, with zeros as the data of its tensors.
const PADDED_BYTES: usize = 256 << 10;
/// Longest message that still is one.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
const KIB: usize = 1 << 10;

/// Knows how many bytes are allocated, and how many were at most.
struct Counting;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(live, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that are allocated now.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Relaxed)
}

/// Runs something that may have at most `limit_bytes` more allocated at a time than before.
#[track_caller]
fn within<T>(limit_bytes: usize, run: impl FnOnce() -> T) -> T {
    let before = live_bytes();
    PEAK_BYTES.store(before, Relaxed);
    let result = run();
    let peak = PEAK_BYTES.load(Relaxed).saturating_sub(before);
    assert!(peak <= limit_bytes, "{peak} bytes allocated, at most {limit_bytes} are allowed");
    result
}

/// An error has to say something, and not too much.
#[track_caller]
fn check_message(error: &impl Display) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() <= MAX_MESSAGE_BYTES, "a message of {} bytes", text.len());
}

/// Gives a copy of the bytes to something that wants them for ever, and does not keep them.
fn with_static(bytes: Vec<u8>, run: impl FnOnce(&'static [u8])) {
    let pointer = Box::into_raw(bytes.into_boxed_slice());
    // SAFETY: the box is freed below, after everything that `run` made of it is dropped.
    run(unsafe { &*pointer });
    // SAFETY: the pointer came from `into_raw`, and no reference to its bytes is left.
    drop(unsafe { Box::from_raw(pointer) });
}

/// A whole file: above all its metadata.
pub fn gguf_header(data: &[u8]) {
    with_static(data.to_vec(), |bytes| open(bytes, || GgufFile::from_static(bytes)));
}

/// Alignment and architecture in one byte, the tensor count in two, then the directory of a file that goes on with zeros.
pub fn gguf_directory(data: &[u8]) {
    static HEADERS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let [choice, low, high, directory @ ..] = data else { return };
    let headers = HEADERS.get_or_init(|| Architecture::ALL.iter().flat_map(headers_of).collect());
    let mut file = headers[usize::from(*choice) % headers.len()].clone();
    file[8..10].copy_from_slice(&[*low, *high]);
    file.extend(directory);
    file.resize(PADDED_BYTES.max(file.len()), 0);
    with_static(file, |bytes| open(bytes, || GgufFile::from_static(bytes)));
}

/// Headers of a tiny model up to its directory, with several alignments.
fn headers_of(arch: &Architecture) -> Vec<Vec<u8>> {
    let header = |alignment: u32| {
        let tiny = Tiny { tensors: Vec::new(), ..Tiny::of(arch.name()) };
        let (mut bytes, marks) = tiny.writer().alignment(alignment).to_bytes_with_marks();
        bytes.truncate(marks.directory);
        bytes
    };
    [32, 1, 64, 4096].map(header).into()
}

fn open(bytes: &[u8], open: impl FnOnce() -> Result<GgufFile, GgufError>) {
    match within(64 * KIB + 16 * bytes.len(), open) {
        Ok(file) => examine(&file),
        Err(error) => check_message(&error),
    }
}

/// Everything that is done with the header of a file before anything is computed.
fn examine(file: &GgufFile) {
    let metadata = file.metadata();
    for (key, value) in metadata.iter() {
        assert!(value.summary().len() < 10 * KIB && !value.type_name().is_empty());
        let errors = [
            metadata.u64(key).err(),
            metadata.i64(key).err(),
            metadata.f32(key).err(),
            metadata.bool(key).err(),
            metadata.str(key).err(),
            metadata.str_array(key).err(),
            metadata.f32_array(key).err(),
            metadata.u64_array(key).err(),
            metadata.i64_array(key).err(),
            metadata.bool_array(key).err(),
            metadata.u64_per_layer(key, 4).err(),
        ];
        errors.iter().flatten().for_each(check_message);
    }
    let mut ends = vec![0; file.parts().len()];
    for tensor in file.tensors() {
        assert_eq!(file.data(tensor).len() as u64, tensor.bytes, "{}", tensor.name);
        assert_eq!(file.tensor(&tensor.name), Some(tensor));
        assert!(tensor.elements() > 0 && tensor.type_name() != "unknown", "{tensor:?}");
        assert!(tensor.offset >= ends[tensor.part], "{tensor:?} overlaps");
        ends[tensor.part] = tensor.offset + tensor.bytes;
    }
    let header_bytes = file.file_bytes() as usize;
    match within(32 * KIB * KIB + 64 * header_bytes, || Bound::new(file)) {
        Ok(bound) => {
            let census = Census::of(&bound);
            assert!(census.parameters_active <= census.parameters_total);
        }
        Err(error) => check_message(&error),
    }
    for arch in Architecture::ALL {
        if let Err(problems) = Spec::read(metadata, arch, 16) {
            problems.iter().for_each(check_message);
        }
    }
    match vocab_source(metadata) {
        Ok(source) => use_vocabulary(source, &["Hello, wörld! 123\n"]),
        Err(error) => check_message(&error),
    }
}

/// Parts of a split model, each from one magic number to the next, behind a byte that says which to open and whether one
/// more is named than there are.
pub fn split_set(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let starts: Vec<usize> =
        data.windows(4).enumerate().filter(|(_, word)| *word == b"GGUF").map(|(at, _)| at).collect();
    let starts = &starts[..starts.len().min(4)];
    if starts.is_empty() {
        return;
    }
    let count = starts.len() + usize::from(choice >> 7);
    let folder = tempfile::tempdir().unwrap();
    let path = |part: usize| -> PathBuf { folder.path().join(format!("m-{:05}-of-{count:05}.gguf", part + 1)) };
    let ends = starts.iter().skip(1).copied().chain([data.len()]);
    for (part, (start, end)) in starts.iter().zip(ends).enumerate() {
        std::fs::write(path(part), &data[*start..end]).unwrap();
    }
    let limit_bytes = 64 * KIB + 16 * data.len();
    let file = match within(limit_bytes, || GgufFile::open(&path(usize::from(choice & 0x7f) % starts.len()))) {
        Ok(file) => file,
        Err(error) => return check_message(&error),
    };
    examine(&file);
    if file.parts().len() > 1 {
        for part in 0..count {
            let other = GgufFile::open(&path(part)).unwrap();
            assert_eq!((other.tensors(), other.parts().len()), (file.tensors(), count));
        }
    }
}

/// Fields of a vocabulary and of texts. The first character of each says what it is; a digit starts a token of that type.
pub fn tokenizer(data: &[u8]) {
    let mut source = VocabSource { model: "gpt2".into(), pre: "qwen35".into(), ..VocabSource::default() };
    let mut texts = Vec::new();
    for field in data.split(|byte| *byte == FIELD_END) {
        let text = String::from_utf8_lossy(field);
        let mut rest = text.chars();
        let kind = rest.next();
        let rest = rest.as_str();
        match kind {
            Some(kind @ '0'..='9') => {
                source.tokens.push(rest.to_owned());
                source.token_types.push(kind as i32 - '0' as i32);
            }
            Some('m') => source.merges.push(rest.to_owned()),
            Some('q') => source.pre = rest.to_owned(),
            Some('M') => source.model = rest.to_owned(),
            Some('e') => source.eos = rest.parse().ok(),
            Some('t') => source.eot = rest.parse().ok(),
            Some('p') => source.padding = rest.parse().ok(),
            Some('b') => {
                source.bos = rest.parse().ok();
                source.add_bos = true;
            }
            // Without all bytes most texts are refused.
            Some('a') => {
                source.tokens.extend(alphabet().map(String::from));
                source.token_types.resize(source.tokens.len(), 1);
            }
            Some('>') => texts.push(rest.to_owned()),
            _ => {}
        }
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    use_vocabulary(source, &texts);
}

/// The characters that stand for bytes, in no particular order: those that print as themselves, and as many from U+0100.
fn alphabet() -> impl Iterator<Item = char> {
    let printable = ('!'..='~').chain('\u{a1}'..='\u{ac}').chain('\u{ae}'..='\u{ff}');
    printable.chain('\u{100}'..='\u{143}')
}

fn use_vocabulary(source: VocabSource, texts: &[&str]) {
    let bytes: usize = source.tokens.iter().chain(&source.merges).map(|text| text.len() + 8).sum();
    let tokenizer = match within(2 * KIB * KIB + 64 * bytes, || Tokenizer::new(source)) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return check_message(&error),
    };
    assert!((0..tokenizer.vocab_len() as u32).all(|id| tokenizer.token_bytes(id).is_some()));
    assert!(tokenizer.stop_ids().iter().all(|id| (*id as usize) < tokenizer.vocab_len()));
    for text in texts {
        for parse_special in [false, true] {
            let ids = match tokenizer.encode(text, parse_special) {
                Ok(ids) => ids,
                Err(TextError::NoByteToken { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            assert!(parse_special || !ids.iter().any(|id| tokenizer.is_special(*id)), "{text:?}: {ids:?}");
            check_round_trip(&tokenizer, text, &ids);
        }
    }
}

/// Tokens give the text back, in canonical composition, however they are streamed.
fn check_round_trip(tokenizer: &Tokenizer, text: &str, ids: &[u32]) {
    let bytes: Vec<u8> = ids.iter().flat_map(|id| tokenizer.token_bytes(*id).unwrap()).copied().collect();
    let whole = String::from_utf8_lossy(&bytes);
    // A token may end a segment of the text that is composed by itself, so that both sides are composed here.
    assert_eq!(composed(&whole), composed(text), "{text:?}: {ids:?}");
    let mut detokenizer = Detokenizer::new(tokenizer, true);
    let mut streamed: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
    streamed.push_str(&detokenizer.finish());
    assert_eq!(streamed, whole, "{ids:?}");
}

fn composed(text: &str) -> String {
    let mut normalised = NormalizedString::from(text);
    normalised.nfc();
    normalised.get().to_owned()
}

/// Options in one byte, then fields: the template, unless the demo's is chosen, and roles and contents by turns.
pub fn template(data: &[u8]) {
    let Some((options, data)) = data.split_first() else { return };
    let bit = |n: u8| options >> n & 1 == 1;
    let mut fields = data.split(|byte| *byte == FIELD_END).map(|field| String::from_utf8_lossy(field).into_owned());
    let source = if bit(0) { DEMO_TEMPLATE.to_owned() } else { fields.next().unwrap_or_default() };
    let mut messages = Vec::new();
    while let Some(role) = fields.next() {
        messages.push(Message { role, content: fields.next().unwrap_or_default() });
    }
    let options = RenderOptions { add_generation_prompt: bit(1), enable_thinking: bit(2).then_some(bit(3)) };
    let bytes = source.len() + data.len();
    let parsed = within(256 * KIB + 1024 * bytes, || ChatTemplate::new(source, bit(4).then(|| "<s>".into()), None));
    let template = match parsed {
        Ok(template) => template,
        Err(error) => return check_message(&error),
    };
    match within(64 * KIB * KIB + 64 * bytes, || template.render(&messages, options)) {
        Ok(_) => {}
        Err(error) => {
            check_message(&error);
            assert!(!error.to_string().contains("panicked"), "{error}");
        }
    }
}
