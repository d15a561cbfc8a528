use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{Model, NormalizedString};

use super::TextError;

/// Tokens that end an answer wherever a vocabulary has them.
const STOP_TEXTS: [&str; 5] = ["<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"];

/// Longest control or user-defined token: each is compared at every position of a text.
const MAX_SPECIAL_BYTES: usize = 1024;

const PRE_QWEN35: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";
const PRE_QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";

/// A vocabulary as it stands in the `tokenizer.ggml.*` metadata of a GGUF file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VocabSource {
    /// `model`: the kind of tokenizer.
    pub model: String,
    /// `pre`: the name of the pre-tokenizer.
    pub pre: String,
    /// `tokens`: the text of each id, bytes of normal tokens in the byte-level alphabet.
    pub tokens: Vec<String>,
    /// `token_type`, parallel to `tokens`.
    pub token_types: Vec<i32>,
    /// `merges`: pairs "left right", best first.
    pub merges: Vec<String>,
    /// `eos_token_id`.
    pub eos: Option<u32>,
    /// `eot_token_id`.
    pub eot: Option<u32>,
    /// `bos_token_id`.
    pub bos: Option<u32>,
    /// `padding_token_id`.
    pub padding: Option<u32>,
    /// `add_bos_token`.
    pub add_bos: bool,
    /// `tokenizer.chat_template`.
    pub chat_template: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

impl Kind {
    fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}

/// Byte-level BPE of one vocabulary. Immutable; share it between threads at will.
#[derive(Debug)]
pub struct Tokenizer {
    bpe: BPE,
    words: WordSplitter,
    /// Tokens that no merges of ordinary text lead to, and so stay out of the BPE.
    reserved: HashMap<String, u32>,
    all_special: SpecialSplitter,
    user_defined: SpecialSplitter,
    alphabet: [char; 256],
    has_byte: [bool; 256],
    kinds: Vec<Kind>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    stop: Vec<u32>,
    bos: Option<u32>,
    eos: Option<u32>,
    padding: Option<u32>,
    add_bos: bool,
    chat_template: Option<String>,
}

impl Tokenizer {
    /// Checks a vocabulary and builds its tokenizer.
    pub fn new(source: VocabSource) -> Result<Self, TextError> {
        if source.model != "gpt2" {
            return Err(TextError::UnsupportedModel { found: source.model });
        }
        let words = WordSplitter::new(&source.pre)?;
        let count = source.tokens.len();
        if count == 0 || u32::try_from(count).is_err() {
            return Err(TextError::VocabSize { found: count });
        }
        if source.token_types.len() != count {
            return Err(TextError::TypeCount { tokens: count, types: source.token_types.len() });
        }
        for (key, id) in [
            ("tokenizer.ggml.eos_token_id", source.eos),
            ("tokenizer.ggml.eot_token_id", source.eot),
            ("tokenizer.ggml.bos_token_id", source.bos),
            ("tokenizer.ggml.padding_token_id", source.padding),
        ] {
            if let Some(found) = id.filter(|&id| id as usize >= count) {
                return Err(TextError::IdOutOfRange { key, found, tokens: count });
            }
        }
        if source.add_bos && source.bos.is_none() {
            return Err(TextError::BosMissing);
        }

        let alphabet = byte_alphabet();
        let byte_of: HashMap<char, u8> = alphabet.iter().zip(0..=255).map(|(&c, byte)| (c, byte)).collect();
        let mut vocab = Vocab::with_capacity(count);
        let mut reserved = HashMap::new();
        let mut kinds = Vec::with_capacity(count);
        let mut bytes = Vec::with_capacity(count * 8);
        let mut ends = Vec::with_capacity(count);
        for ((token, code), id) in source.tokens.into_iter().zip(source.token_types).zip(0u32..) {
            let Some(kind) = Kind::from_code(code) else {
                return Err(TextError::TokenType { id, token, found: code });
            };
            if token.is_empty() {
                return Err(TextError::EmptyToken { id });
            }
            if let Some(&first) = vocab.get(&token).or_else(|| reserved.get(&token)) {
                return Err(TextError::DuplicateToken { id, first, token });
            }
            let is_looked_for = matches!(kind, Kind::Control | Kind::UserDefined);
            if is_looked_for && token.len() > MAX_SPECIAL_BYTES {
                return Err(TextError::LongToken { id, found: token.len(), max: MAX_SPECIAL_BYTES, token });
            }
            push_bytes(&mut bytes, &byte_of, kind, id, &token)?;
            ends.push(bytes.len());
            kinds.push(kind);
            // In the BPE a character stands for a byte, which it is by itself only if it is printable ASCII.
            let spells_itself = token.bytes().all(|byte| byte.is_ascii_graphic());
            if kind == Kind::Normal || kind == Kind::UserDefined && spells_itself {
                vocab.insert(token, id);
            } else {
                reserved.insert(token, id);
            }
        }

        let merges = check_merges(&vocab, source.merges)?;
        let mut has_byte = [false; 256];
        for (has, c) in has_byte.iter_mut().zip(alphabet) {
            *has = vocab.contains_key(c.encode_utf8(&mut [0; 4]) as &str);
        }
        let user = entries_of(vocab.iter().chain(&reserved), &kinds, Kind::UserDefined);
        let mut special = entries_of(&reserved, &kinds, Kind::Control);
        special.extend_from_slice(&user);
        let all_special = SpecialSplitter::new(special);
        let user_defined = SpecialSplitter::new(user);

        let named = STOP_TEXTS.iter().filter_map(|&text| reserved.get(text).or_else(|| vocab.get(text)).copied());
        let stop: BTreeSet<u32> = source.eos.into_iter().chain(source.eot).chain(named).collect();
        let bpe = BPE::builder()
            .vocab_and_merges(vocab, merges)
            // The library's cache belongs to the thread, which keeps it when the tokenizer is gone.
            .cache_capacity(0)
            .build()
            .map_err(|error| TextError::Bpe { detail: error.to_string() })?;
        Ok(Self {
            bpe,
            words,
            reserved,
            all_special,
            user_defined,
            alphabet,
            has_byte,
            kinds,
            bytes,
            ends,
            stop: stop.into_iter().collect(),
            bos: source.bos,
            eos: source.eos,
            padding: source.padding,
            add_bos: source.add_bos,
            chat_template: source.chat_template,
        })
    }

    /// Ids of a text, without a leading bos token.
    ///
    /// Without `parse_special` the text of a control token is ordinary text, as it must be for untrusted input.
    /// User-defined tokens such as `<think>` are part of the text either way.
    pub fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<u32>, TextError> {
        let splitter = if parse_special { &self.all_special } else { &self.user_defined };
        let mut ids = Vec::with_capacity(text.len() / 3);
        let mut start = 0;
        while let Some((at, length, id)) = splitter.find(text.as_bytes(), start) {
            self.encode_ordinary(&text[start..at], &mut ids)?;
            ids.push(id);
            start = at + length;
        }
        self.encode_ordinary(&text[start..], &mut ids)?;
        Ok(ids)
    }

    fn encode_ordinary(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TextError> {
        let text = normalise(text);
        let mut spelled = String::new();
        let mut rest = &*text;
        while !rest.is_empty() {
            let (word, after) = rest.split_at(self.words.first_word(rest));
            rest = after;
            spelled.clear();
            for byte in word.bytes() {
                // The BPE drops what it does not know, which would change the text unnoticed.
                if !self.has_byte[usize::from(byte)] {
                    return Err(TextError::NoByteToken { byte });
                }
                spelled.push(self.alphabet[usize::from(byte)]);
            }
            let tokens = self.bpe.tokenize(&spelled).map_err(|error| TextError::Bpe { detail: error.to_string() })?;
            ids.extend(tokens.iter().map(|token| token.id));
        }
        Ok(())
    }

    /// Ids of a text that begins a sequence: with the beginning-of-sequence token in front where the model asks for one, and names of special tokens
    /// read as these tokens.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>, TextError> {
        let mut ids: Vec<u32> = if self.add_bos() { self.bos().into_iter().collect() } else { Vec::new() };
        ids.extend(self.encode(text, true)?);
        Ok(ids)
    }

    /// The bytes a token stands for; `None` if the id is outside of the vocabulary.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        let index = id as usize;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// Number of tokens.
    pub fn vocab_len(&self) -> usize {
        self.ends.len()
    }

    /// Id of the token with this text, as the vocabulary spells it.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.reserved.get(token).copied().or_else(|| self.bpe.token_to_id(token))
    }

    /// Whether a token is markup or padding rather than part of an answer: control, unknown and unused tokens.
    pub fn is_special(&self, id: u32) -> bool {
        matches!(self.kinds.get(id as usize), Some(Kind::Control | Kind::Unknown | Kind::Unused))
    }

    /// Ids that end an answer, ascending.
    pub fn stop_ids(&self) -> &[u32] {
        &self.stop
    }

    /// Id of the end-of-sequence token.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Id of the beginning-of-sequence token.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Id of the padding token.
    pub fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// Whether prompts start with [`bos`](Self::bos), which is then present.
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Source of the chat template that came with the vocabulary.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }
}

/// The character that stands for each byte: printable Latin-1 for itself, the others from U+0100 on.
fn byte_alphabet() -> [char; 256] {
    let mut next = 0x100u32;
    std::array::from_fn(|byte| {
        let code = byte as u32;
        let itself = matches!(code, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if itself {
            code
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    })
}

fn push_bytes(
    bytes: &mut Vec<u8>,
    byte_of: &HashMap<char, u8>,
    kind: Kind,
    id: u32,
    token: &str,
) -> Result<(), TextError> {
    match kind {
        Kind::Normal => {
            for found in token.chars() {
                let Some(&byte) = byte_of.get(&found) else {
                    return Err(TextError::OutsideAlphabet { id, token: token.to_owned(), found });
                };
                bytes.push(byte);
            }
        }
        Kind::Byte => {
            let digits = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
            let digits = digits.filter(|digits| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
            match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(byte) => bytes.push(byte),
                None => return Err(TextError::ByteToken { id, token: token.to_owned() }),
            }
        }
        Kind::Unknown | Kind::Control | Kind::UserDefined | Kind::Unused => bytes.extend_from_slice(token.as_bytes()),
    }
    Ok(())
}

fn entries_of<'a>(
    ids: impl IntoIterator<Item = (&'a String, &'a u32)>,
    kinds: &[Kind],
    kind: Kind,
) -> Vec<(String, u32)> {
    let of_kind = ids.into_iter().filter(|&(_, &id)| kinds[id as usize] == kind);
    of_kind.map(|(token, &id)| (token.clone(), id)).collect()
}

/// Splits the merges into pairs, all of whose tokens and results exist.
fn check_merges(vocab: &Vocab, merges: Vec<String>) -> Result<Vec<(String, String)>, TextError> {
    let mut seen = HashSet::with_capacity(merges.len());
    let mut pairs = Vec::with_capacity(merges.len());
    let mut joined = String::new();
    for (index, merge) in merges.into_iter().enumerate() {
        let pair = merge.split_once(' ');
        let Some((left, right)) = pair.filter(|(l, r)| !l.is_empty() && !r.is_empty() && !r.contains(' ')) else {
            return Err(TextError::MergeForm { index, merge });
        };
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let id = |part: &str| {
            vocab.get(part).copied().ok_or_else(|| TextError::MergeUnknown {
                index,
                merge: merge.clone(),
                part: part.to_owned(),
            })
        };
        let ids = (id(left)?, id(right)?);
        id(&joined)?;
        if !seen.insert(ids) {
            return Err(TextError::DuplicateMerge { index, merge });
        }
        pairs.push((left.to_owned(), right.to_owned()));
    }
    Ok(pairs)
}

/// Canonical composition, which the models' training data went through.
fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut normalised = NormalizedString::from(text);
    normalised.nfc();
    Cow::Owned(normalised.get().to_owned())
}

fn compile(pattern: &str) -> Regex {
    Regex::new(&format!(r"\A(?:{pattern})")).expect("the patterns are constants that the tests compile")
}

/// Cuts ordinary text into the words that the BPE works on.
#[derive(Debug)]
struct WordSplitter {
    regex: &'static Regex,
}

impl WordSplitter {
    fn new(pre: &str) -> Result<Self, TextError> {
        static QWEN35: LazyLock<Regex> = LazyLock::new(|| compile(PRE_QWEN35));
        static QWEN2: LazyLock<Regex> = LazyLock::new(|| compile(PRE_QWEN2));
        match pre {
            "qwen35" => Ok(Self { regex: &QWEN35 }),
            "qwen2" => Ok(Self { regex: &QWEN2 }),
            _ => Err(TextError::UnsupportedPre { found: pre.to_owned(), accepted: "\"qwen35\", \"qwen2\"" }),
        }
    }

    /// Length of the first word of a text that is not empty.
    ///
    /// The published patterns leave the last space of a run to the word that follows, by a lookahead. Doing that
    /// here keeps the expression regular, so its time is linear in any input.
    fn first_word(&self, text: &str) -> usize {
        let end = self.regex.find(text).map_or(text.len(), |found| found.end());
        let last = text[..end].chars().next_back().unwrap_or_default();
        let is_space_run = last.is_whitespace() && !matches!(last, '\r' | '\n');
        if is_space_run && end < text.len() && end > last.len_utf8() { end - last.len_utf8() } else { end }
    }
}

/// Finds the leftmost, then longest occurrence of a set of texts.
#[derive(Debug)]
struct SpecialSplitter {
    /// Sorted, so that the texts with a common beginning are a range.
    texts: Vec<(String, u32)>,
    starts: [bool; 256],
}

impl SpecialSplitter {
    fn new(mut texts: Vec<(String, u32)>) -> Self {
        texts.sort();
        let mut starts = [false; 256];
        for first in texts.iter().filter_map(|(text, _)| text.bytes().next()) {
            starts[usize::from(first)] = true;
        }
        Self { texts, starts }
    }

    /// Position, length and id of the next occurrence at or after `from`.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize, u32)> {
        let candidates = text.iter().enumerate().skip(from).filter(|&(_, &byte)| self.starts[usize::from(byte)]);
        candidates.map(|(at, _)| at).find_map(|at| self.longest(&text[at..]).map(|(length, id)| (at, length, id)))
    }

    fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        let mut range = self.texts.as_slice();
        let mut best = None;
        for (depth, byte) in text.iter().enumerate() {
            let at = |entry: &(String, u32)| entry.0.as_bytes().get(depth).copied();
            let low = range.partition_point(|entry| at(entry) < Some(*byte));
            let high = range.partition_point(|entry| at(entry) <= Some(*byte));
            range = &range[low..high];
            match range.first() {
                None => break,
                Some((token, id)) if token.len() == depth + 1 => best = Some((depth + 1, *id)),
                Some(_) => {}
            }
        }
        best
    }
}
