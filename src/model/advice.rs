//! What looks wrong in a file that can be used.

use super::layers::Bound;
use crate::gguf::{GgufError, GgufFile};

/// Things that a user may want to know before running the model, beside the warnings of binding.
///
/// # Errors
/// When a key of the tokenizer has another type than it should.
pub fn advice(file: &GgufFile, bound: &Bound) -> Result<Vec<String>, GgufError> {
    let metadata = file.metadata();
    let mut advice = Vec::new();
    let tokens = metadata.str_array("tokenizer.ggml.tokens")?.unwrap_or_default();
    if tokens.is_empty() {
        advice.push("key `tokenizer.ggml.tokens` is missing: the model does not run without its vocabulary".to_owned());
    }
    if metadata.str("tokenizer.chat_template")?.is_none() {
        advice.push("key `tokenizer.chat_template` is missing: `chat` and `run --chat` do not work".to_owned());
    }
    let eos = metadata.u64("tokenizer.ggml.eos_token_id")?;
    if eos.is_none() {
        advice.push(
            "key `tokenizer.ggml.eos_token_id` is missing: answers end only at tokens known by their text".to_owned(),
        );
    }
    if let Some(ple) = &bound.spec.ple {
        let text = tokens.get(ple.eos as usize).map_or("", String::as_str);
        let ends_a_text = text == "<|endoftext|>" || text.is_empty();
        if !ends_a_text && (eos == Some(u64::from(ple.eos)) || text == "<|im_end|>") {
            let key = format!("{}.ple.eos_token_id", bound.spec.arch.name());
            advice.push(format!(
                "key `{key}` is {} (`{text}`), which ends a turn: n-grams start anew at every turn of a \
                 chat, where the published models have the id of `<|endoftext|>`",
                ple.eos
            ));
        }
    }
    Ok(advice)
}
