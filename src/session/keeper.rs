//! An engine's sequence to a folder of sessions and back.

use super::KeepError;
use super::turns::turn_of;
use crate::exec::Engine;
use crate::state::{Extras, Identity, Image, Layout, Loaded, Saved, SessionError, SnapshotId, Store};
use crate::text::{Detokenizer, Tokenizer};

/// A folder of sessions, and what an engine's sessions are known by.
pub struct Keeper {
    store: Store,
    identity: Identity,
}

/// A saved state that a later one can be a delta of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    pub id: SnapshotId,
    pub ids: Vec<u32>,
}

impl Base {
    /// Whether a sequence begins with it and goes on.
    pub fn is_beginning_of(&self, ids: &[u32]) -> bool {
        ids.len() > self.ids.len() && ids.starts_with(&self.ids)
    }
}

/// What was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    pub base: Base,
    /// What the program that saved the session added.
    pub notes: Option<Vec<u8>>,
}

impl Keeper {
    /// # Errors
    /// When the model's files cannot be read.
    pub fn new(store: Store, engine: &Engine) -> Result<Keeper, KeepError> {
        Ok(Keeper { store, identity: Identity::of(engine.model(), engine.plan())? })
    }

    /// Of an identity that is known already.
    pub(super) fn with_identity(store: Store, identity: Identity) -> Keeper {
        Keeper { store, identity }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether a session can have this name.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn check_name(&self, name: &str) -> Result<(), KeepError> {
        Store::check_name(name)?;
        match turn_of(name) {
            Some(_) => Err(KeepError::Reserved { name: name.to_owned() }),
            None => Ok(()),
        }
    }

    /// Saves the engine's sequence, as a delta of `base` if it begins with that and goes on.
    ///
    /// # Errors
    /// When the state does not fit host memory, the base is not in the folder, the folder cannot take it, or a device fails.
    pub fn save(
        &self,
        engine: &mut Engine,
        name: &str,
        notes: Option<&[u8]>,
        compress: bool,
        base: Option<&Base>,
    ) -> Result<Saved, KeepError> {
        self.check_name(name)?;
        self.write_of(engine, name, notes, compress, base.filter(|base| base.is_beginning_of(engine.ids())))
    }

    pub(super) fn write_of(
        &self,
        engine: &mut Engine,
        name: &str,
        notes: Option<&[u8]>,
        compress: bool,
        base: Option<&Base>,
    ) -> Result<Saved, KeepError> {
        let image = engine.image(base.map_or(0, |base| base.ids.len()))?;
        Ok(self.write(engine.model().tokenizer(), engine.layout(), &image, name, notes, compress, base)?)
    }

    /// Writes a sequence's state, which begins behind `base`.
    #[allow(clippy::too_many_arguments, reason = "the parts of a file")]
    pub(super) fn write(
        &self,
        tokenizer: &Tokenizer,
        layout: &Layout,
        image: &Image,
        name: &str,
        notes: Option<&[u8]>,
        compress: bool,
        base: Option<&Base>,
    ) -> Result<Saved, SessionError> {
        let text = text_of(tokenizer, &image.ids);
        let extras = Extras { text: &text, notes, compress, ..Extras::default() };
        self.store.save(name, &self.identity, layout, image, extras, base.map(|base| base.id))
    }

    /// Reads a state of so many tokens at most.
    pub(super) fn read(&self, layout: &Layout, context: usize, name: &str) -> Result<Loaded, SessionError> {
        self.store.load(name, &self.identity, layout, context)
    }

    /// Makes a saved session the engine's sequence. Until all of it was verified, nothing changes.
    ///
    /// # Errors
    /// When the session is missing, damaged, of another model or longer than the context, or a device fails.
    pub fn restore(&self, engine: &mut Engine, name: &str) -> Result<Restored, KeepError> {
        let loaded = self.read(engine.layout(), engine.plan().options.context, name)?;
        engine.restore(&loaded.image)?;
        Ok(Restored { base: Base { id: loaded.id, ids: loaded.image.ids }, notes: loaded.notes })
    }
}

/// All of a sequence's text, with its special tokens.
fn text_of(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut detokenizer = Detokenizer::new(tokenizer, true);
    let mut text: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
    text.push_str(&detokenizer.finish());
    text
}
