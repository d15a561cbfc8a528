//! Text in and out of a model: tokenizer, streaming detokenizer and chat template.

mod detokenizer;
mod template;
mod tokenizer;

pub use detokenizer::Detokenizer;
pub use template::{ChatTemplate, Message, RenderOptions};
pub use tokenizer::{Tokenizer, VocabSource};

use crate::gguf::quoted;

fn at(line: &Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

/// What can be wrong with a vocabulary, a text to encode or a chat template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The file holds another kind of tokenizer.
    #[error("unsupported tokenizer model {}, expected \"gpt2\" (byte-level BPE)", quoted(found))]
    UnsupportedModel {
        /// Value of `tokenizer.ggml.model`.
        found: String,
    },
    /// The file names a pre-tokenizer that is not implemented.
    #[error("unsupported pre-tokenizer {}, expected one of {accepted}", quoted(found))]
    UnsupportedPre {
        /// Value of `tokenizer.ggml.pre`.
        found: String,
        /// The names that would have been accepted.
        accepted: &'static str,
    },
    /// The vocabulary has no entries, or more than ids can number.
    #[error("the vocabulary has {found} tokens, expected 1 to {max}", max = u32::MAX)]
    VocabSize {
        /// Number of tokens.
        found: usize,
    },
    /// Tokens and token types are not parallel lists.
    #[error("the vocabulary has {types} token types, expected {tokens}, one per token")]
    TypeCount {
        /// Number of tokens.
        tokens: usize,
        /// Number of token types.
        types: usize,
    },
    /// A token type outside of the known range.
    #[error("token {id} ({}) has type {found}, expected 1 to 6", quoted(token))]
    TokenType {
        /// Token id.
        id: u32,
        /// Token text.
        token: String,
        /// The type found.
        found: i32,
    },
    /// A token without text.
    #[error("token {id} is empty, expected at least one character")]
    EmptyToken {
        /// Token id.
        id: u32,
    },
    /// A token that is looked for in every text, and would take too long to look for.
    #[error(
        "token {id} ({}) has {found} bytes, expected at most {max} of a control or user-defined token",
        quoted(token)
    )]
    LongToken {
        /// Token id.
        id: u32,
        /// Token text.
        token: String,
        /// Its length in bytes.
        found: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// Two ids with the same text.
    #[error("token {id} ({}) repeats token {first}, expected distinct texts", quoted(token))]
    DuplicateToken {
        /// The later id.
        id: u32,
        /// The earlier id.
        first: u32,
        /// Their text.
        token: String,
    },
    /// A normal token that does not spell bytes.
    #[error("token {id} ({}) contains {found:?}, expected characters of the byte-level alphabet only", quoted(token))]
    OutsideAlphabet {
        /// Token id.
        id: u32,
        /// Token text.
        token: String,
        /// The first foreign character.
        found: char,
    },
    /// A token of type byte that does not name one.
    #[error("byte token {id} is {}, expected the form \"<0x0A>\"", quoted(token))]
    ByteToken {
        /// Token id.
        id: u32,
        /// Token text.
        token: String,
    },
    /// A merge that is not a pair.
    #[error("merge {index} is {}, expected two tokens separated by one space", quoted(merge))]
    MergeForm {
        /// Position in the list of merges.
        index: usize,
        /// The merge as found.
        merge: String,
    },
    /// A merge whose side or result is not in the vocabulary.
    #[error(
        "merge {index} ({}) needs {}, expected a normal or user-defined token of that text",
        quoted(merge),
        quoted(part)
    )]
    MergeUnknown {
        /// Position in the list of merges.
        index: usize,
        /// The merge as found.
        merge: String,
        /// The missing token.
        part: String,
    },
    /// A pair that is listed twice and so has two ranks.
    #[error("merge {index} ({}) repeats an earlier merge, expected distinct pairs", quoted(merge))]
    DuplicateMerge {
        /// Position in the list of merges.
        index: usize,
        /// The merge as found.
        merge: String,
    },
    /// A special id that is not in the vocabulary.
    #[error("{key} is {found}, expected an id below {tokens}")]
    IdOutOfRange {
        /// Metadata key.
        key: &'static str,
        /// The id found.
        found: u32,
        /// Number of tokens.
        tokens: usize,
    },
    /// A leading token is demanded but not named.
    #[error("tokenizer.ggml.add_bos_token is true but tokenizer.ggml.bos_token_id is absent, expected both")]
    BosMissing,
    /// The text needs a byte that no token spells.
    #[error("the text contains byte 0x{byte:02x}, which no token of the vocabulary spells")]
    NoByteToken {
        /// The byte.
        byte: u8,
    },
    /// A failure inside of the BPE library.
    #[error("byte-pair encoding failed: {detail}")]
    Bpe {
        /// What the library reported.
        detail: String,
    },
    /// The chat template does not parse.
    #[error("the chat template does not parse{}: {detail}", at(line))]
    TemplateSyntax {
        /// Line in the template, from 1, if known.
        line: Option<usize>,
        /// What is wrong.
        detail: String,
    },
    /// The chat template did not end in time. Its thread goes on until the process ends.
    #[error("the chat template is still at work after {seconds} s, expected an end within that time")]
    TemplateTime {
        /// The time that it had.
        seconds: u64,
    },
    /// The chat template failed while it ran.
    #[error("the chat template failed{}: {detail}", at(line))]
    TemplateRender {
        /// Line in the template, from 1, if known.
        line: Option<usize>,
        /// What is wrong.
        detail: String,
    },
}
