//! Saved sessions: what is saved is loaded to the bit or refused by name, whatever was cut, flipped, faked or killed. No device.

#[path = "session_files/crashes.rs"]
mod crashes;
#[path = "session_files/damage.rs"]
mod damage;
#[path = "session_files/documents.rs"]
mod documents;
#[path = "session_files/follow.rs"]
mod follow;
#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "session_files/identities.rs"]
mod identities;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random_model;
#[path = "support/shapes.rs"]
mod shapes;
#[path = "session_files/store.rs"]
mod store;
#[path = "session_files/support.rs"]
mod support;
