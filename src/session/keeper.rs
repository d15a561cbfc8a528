//! An engine's sequence to a folder of sessions and back.

use super::KeepError;
use super::turns::turn_of;
use crate::exec::Engine;
use crate::state::{Extras, Identity, Saved, SnapshotId, Store};
use crate::text::Detokenizer;

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
        self.write(engine, name, notes, compress, base.filter(|base| base.is_beginning_of(engine.ids())))
    }

    pub(super) fn write(
        &self,
        engine: &mut Engine,
        name: &str,
        notes: Option<&[u8]>,
        compress: bool,
        base: Option<&Base>,
    ) -> Result<Saved, KeepError> {
        let image = engine.image(base.map_or(0, |base| base.ids.len()))?;
        let text = text_of(engine, &image.ids);
        let extras = Extras { text: &text, notes, compress, ..Extras::default() };
        Ok(self.store.save(name, &self.identity, engine.layout(), &image, extras, base.map(|base| base.id))?)
    }

    /// Makes a saved session the engine's sequence. Until all of it was verified, nothing changes.
    ///
    /// # Errors
    /// When the session is missing, damaged, of another model or longer than the context, or a device fails.
    pub fn restore(&self, engine: &mut Engine, name: &str) -> Result<Restored, KeepError> {
        let loaded = self.store.load(name, &self.identity, engine.layout(), engine.plan().options.context)?;
        engine.restore(&loaded.image)?;
        Ok(Restored { base: Base { id: loaded.id, ids: loaded.image.ids }, notes: loaded.notes })
    }
}

/// All of a sequence's text, with its special tokens.
fn text_of(engine: &Engine, ids: &[u32]) -> String {
    let mut detokenizer = Detokenizer::new(engine.model().tokenizer(), true);
    let mut text: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
    text.push_str(&detokenizer.finish());
    text
}
