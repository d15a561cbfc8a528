//! What a saved session says of itself as JSON, for programs.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Info;

impl Info {
    /// All that is known of the file, as the command `session inspect` prints it.
    pub fn to_json(&self) -> Value {
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        json!({
            "name": self.name,
            "version": self.version,
            "snapshot": self.id.to_string(),
            "chain": self.chain.iter().map(|link| json!({ "snapshot": link.id.to_string(), "name": link.name })).collect::<Value>(),
            "broken": self.broken,
            "tokens": self.position,
            "from": self.from,
            "bytes": self.bytes,
            "sections": self.sections.iter().map(|section| json!({
                "kind": section.kind.name(),
                "layer": section.layer,
                "encoding": section.encoding.name(),
                "stored_bytes": section.stored_bytes,
                "bytes": section.raw_bytes,
            })).collect::<Value>(),
            "created_unix_s": seconds(self.created),
            "last_used_unix_s": seconds(self.last_used),
            "identity": self.identity.fields().iter().map(|(name, value)| (name.clone(), Value::from(value.clone()))).collect::<serde_json::Map<_, _>>(),
            "text_start": self.text_start,
            "text_bytes": self.text_bytes,
            "notes_bytes": self.notes_bytes,
            "has_logits": self.has_logits,
        })
    }
}
