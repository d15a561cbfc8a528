use std::ops::Deref;

use super::Tokenizer;

/// Turns a stream of token ids into text, holding back characters that are not complete yet.
///
/// All pushes and the final [`finish`](Self::finish) together give what [`String::from_utf8_lossy`] makes of all
/// bytes at once. `T` is anything that leads to a tokenizer: a reference, an `Arc`.
#[derive(Debug, Clone)]
pub struct Detokenizer<T> {
    tokenizer: T,
    show_special: bool,
    pending: Vec<u8>,
}

impl<T: Deref<Target = Tokenizer>> Detokenizer<T> {
    /// Starts a stream. Tokens for which [`Tokenizer::is_special`] holds appear only if `show_special` is set.
    pub fn new(tokenizer: T, show_special: bool) -> Self {
        Self { tokenizer, show_special, pending: Vec::new() }
    }

    /// Appends a token and returns the text that is complete by now.
    ///
    /// An id outside of the vocabulary has no bytes and adds nothing.
    pub fn push(&mut self, id: u32) -> String {
        if self.show_special || !self.tokenizer.is_special(id) {
            self.pending.extend_from_slice(self.tokenizer.token_bytes(id).unwrap_or_default());
        }
        self.take_complete()
    }

    /// Ends the stream: an unfinished character becomes U+FFFD. The detokenizer can then serve a new stream.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        text
    }

    fn take_complete(&mut self) -> String {
        let mut text = String::new();
        let mut rest = self.pending.as_slice();
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            rest = &rest[chunk.valid().len()..];
            // Only a sequence that the next token can still complete has no error length.
            if std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none()) {
                break;
            }
            if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            rest = &rest[chunk.invalid().len()..];
        }
        let held = rest.len();
        self.pending.drain(..self.pending.len() - held);
        text
    }
}
