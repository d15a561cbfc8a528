//! A model file, opened and checked.

use std::path::{Path, PathBuf};

use crate::gguf::{GgufError, GgufFile, Metadata};
use crate::model::{Bound, ModelError};
use crate::text::{ChatTemplate, TextError, Tokenizer, VocabSource};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error(transparent)]
    File(#[from] GgufError),
    #[error("{path}: {problem}")]
    Model { path: String, problem: ModelError },
    #[error("{path}: tokenizer: {problem}")]
    Text { path: String, problem: TextError },
    #[error("{path}: tokenizer: expected at most {rows} tokens, one for each row of the embedding, found {tokens}")]
    Vocabulary { path: String, rows: usize, tokens: usize },
    #[error("{path}: cannot open the file a second time: {cause}")]
    Reopen { path: PathBuf, cause: std::io::Error },
    /// `what` the bytes are: `tensor output.weight`.
    #[error("{path}: {what}: cannot read {bytes} bytes at offset {offset}: {cause}")]
    Read { path: PathBuf, what: String, offset: u64, bytes: usize, cause: std::io::Error },
    #[error("{path}: a file of n-gram rows is named, but the model has no n-gram table")]
    NoTable { path: PathBuf },
    #[error("{path}: tensor {tensor}: expected {expected} as in the model, found {found}")]
    OtherTable { path: PathBuf, tensor: String, expected: String, found: String },
}

/// A model file with its tensors bound, and the text side of it.
#[derive(Debug)]
pub struct Model {
    file: GgufFile,
    bound: Bound,
    tokenizer: Tokenizer,
}

impl Model {
    /// Opens a GGUF file. Reads its header; weights are read when they are needed.
    ///
    /// # Errors
    /// Whatever is wrong with the file, all problems of one kind at once.
    pub fn open(path: &Path) -> Result<Model, LoadError> {
        Model::new(GgufFile::open(path)?)
    }

    /// Opens a file that is part of the program.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn from_static(bytes: &'static [u8]) -> Result<Model, LoadError> {
        Model::new(GgufFile::from_static(bytes)?)
    }

    fn new(file: GgufFile) -> Result<Model, LoadError> {
        let path = file.path().display().to_string();
        let bound = Bound::new(&file).map_err(|problem| LoadError::Model { path: path.clone(), problem })?;
        let source = vocab_source(file.metadata())?;
        let (rows, tokens) = (bound.spec.vocab, source.tokens.len());
        if tokens > rows {
            return Err(LoadError::Vocabulary { path, rows, tokens });
        }
        let tokenizer = Tokenizer::new(source).map_err(|problem| LoadError::Text { path, problem })?;
        Ok(Model { file, bound, tokenizer })
    }

    /// Makes BF16 of matrices in F32 that hold nothing else; see [`Bound::narrowed`].
    ///
    /// # Errors
    /// When the file is not what it was when it was opened.
    pub fn narrowed(mut self) -> Result<Model, LoadError> {
        let path = || self.file.path().display().to_string();
        self.bound = Bound::narrowed(&self.file).map_err(|problem| LoadError::Model { path: path(), problem })?;
        Ok(self)
    }

    pub fn file(&self) -> &GgufFile {
        &self.file
    }

    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The file's chat template, if it has one.
    ///
    /// # Errors
    /// When the template does not parse.
    pub fn chat_template(&self) -> Result<Option<ChatTemplate>, TextError> {
        let Some(source) = self.tokenizer.chat_template() else { return Ok(None) };
        let text = |id: Option<u32>| {
            let bytes = id.and_then(|id| self.tokenizer.token_bytes(id))?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        ChatTemplate::new(source, text(self.tokenizer.bos()), text(self.tokenizer.eos())).map(Some)
    }
}

/// The `tokenizer.*` keys as the tokenizer takes them.
///
/// # Errors
/// When a key that every tokenizer needs is missing, or a key has a value of another type.
pub fn vocab_source(metadata: &Metadata) -> Result<VocabSource, GgufError> {
    const TYPES: &str = "tokenizer.ggml.token_type";
    let id = |name: &str| -> Result<Option<u32>, GgufError> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let narrow = |id: u64| u32::try_from(id).map_err(|_| metadata.error(&key, "an id of 32 bits", id.to_string()));
        metadata.u64(&key)?.map(narrow).transpose()
    };
    let text = |key: &str| -> Result<String, GgufError> {
        Ok(metadata.str(key)?.ok_or_else(|| metadata.missing(key, "a string"))?.to_owned())
    };
    let list = |key: &str| -> Result<Vec<String>, GgufError> {
        Ok(metadata.str_array(key)?.ok_or_else(|| metadata.missing(key, "an array of string"))?.to_vec())
    };
    let types = metadata.i64_array(TYPES)?.ok_or_else(|| metadata.missing(TYPES, "an array of integers"))?;
    Ok(VocabSource {
        model: text("tokenizer.ggml.model")?,
        pre: text("tokenizer.ggml.pre")?,
        tokens: list("tokenizer.ggml.tokens")?,
        token_types: types.into_iter().map(|kind| i32::try_from(kind).unwrap_or(-1)).collect(),
        merges: list("tokenizer.ggml.merges")?,
        eos: id("eos")?,
        eot: id("eot")?,
        bos: id("bos")?,
        padding: id("padding")?,
        add_bos: metadata.bool("tokenizer.ggml.add_bos_token")?.unwrap_or(false),
        chat_template: metadata.str("tokenizer.chat_template")?.map(str::to_owned),
    })
}
