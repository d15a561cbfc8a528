//! Many sequences on one engine: each continues where it was, from memory or from disk.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{KeepError, Keeper, TurnFile};
use crate::exec::Engine;
use crate::state::SessionError;

/// How sessions are kept.
#[derive(Clone, Copy, Debug)]
pub struct SessionsOptions {
    /// A session that was not used for so long is parked by [`Sessions::park_idle`].
    pub idle: Duration,
    pub compress: bool,
}

/// Named sequences that share an engine.
///
/// A session is saved at the end of each of its turns, so that a crash loses at most the turn in flight. Between turns its state may be that of the
/// engine, a snapshot in the bank, or the file alone; the next use takes the nearest, and a file that does not fit is an error, never a silent
/// computation from the start. A parked session gives up its tokens and the snapshot at its end; the bank's other snapshots are evicted as they are
/// used less.
pub struct Sessions {
    engine: Engine,
    keeper: Keeper,
    options: SessionsOptions,
    /// In memory, parked ones not among them.
    open: BTreeMap<String, Session>,
    /// Whose sequence the engine's is.
    live: Option<String>,
}

struct Session {
    ids: Vec<u32>,
    notes: Option<Vec<u8>>,
    file: TurnFile,
    used: Instant,
}

impl Sessions {
    pub fn new(engine: Engine, keeper: Keeper, options: SessionsOptions) -> Sessions {
        Sessions { engine, keeper, options, open: BTreeMap::new(), live: None }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Tokens of a session that is not parked.
    pub fn ids(&self, name: &str) -> Option<&[u32]> {
        self.open.get(name).map(|session| &session.ids[..])
    }

    /// What was kept with a session that is not parked.
    pub fn notes(&self, name: &str) -> Option<&[u8]> {
        self.open.get(name)?.notes.as_deref()
    }

    /// Brings a session back to memory if it is parked; says whether there is one of this name.
    ///
    /// # Errors
    /// When its file is damaged or of another model.
    pub fn open(&mut self, name: &str) -> Result<bool, KeepError> {
        if let Some(session) = self.open.get_mut(name) {
            session.used = Instant::now();
            return Ok(true);
        }
        match self.keeper.store().inspect(name, false) {
            Err(SessionError::NotFound { .. }) => return Ok(false),
            other => drop(other?),
        }
        self.leave()?;
        let (file, restored) = TurnFile::restore(&self.keeper, &mut self.engine, name, self.options.compress)?;
        let session = Session { ids: restored.base.ids, notes: restored.notes, file, used: Instant::now() };
        self.open.insert(name.to_owned(), session);
        self.live = Some(name.to_owned());
        Ok(true)
    }

    /// Makes `ids` a session's sequence, which is created if there is none, and returns how many of them were not computed
    /// again. Logits after them are the engine's then.
    ///
    /// # Errors
    /// As [`Sessions::open`] and [`Engine::prompt`].
    pub fn prompt(&mut self, name: &str, ids: &[u32]) -> Result<usize, KeepError> {
        if !self.open(name)? {
            self.keeper.check_name(name)?;
            let file = TurnFile::new(name, self.options.compress, None);
            let session = Session { ids: Vec::new(), notes: None, file, used: Instant::now() };
            self.open.insert(name.to_owned(), session);
        }
        let session = self.session(name)?;
        // What the file has is worth reading if it leads further than what is in memory.
        let saved = session.file.saved_ids();
        let stored = if ids.starts_with(saved) { saved.len() } else { 0 };
        self.enter(name)?;
        if stored > self.engine.known(ids) {
            self.keeper.restore(&mut self.engine, name)?;
        }
        let known = self.engine.prompt(ids)?;
        self.session(name)?.ids = ids.to_vec();
        Ok(known)
    }

    /// Appends a token to a session. Logits after it are the engine's then.
    ///
    /// # Errors
    /// When there is no such session, and as [`Sessions::prompt`].
    pub fn step(&mut self, name: &str, id: u32) -> Result<(), KeepError> {
        if self.live.as_deref() == Some(name)
            && self.open.get(name).is_some_and(|session| session.ids == self.engine.ids())
        {
            self.engine.feed(&[id])?;
            let session = self.session(name)?;
            session.ids.push(id);
            session.used = Instant::now();
            return Ok(());
        }
        if !self.open(name)? {
            return Err(KeepError::Unknown { name: name.to_owned() });
        }
        let mut ids = self.session(name)?.ids.clone();
        ids.push(id);
        self.prompt(name, &ids).map(drop)
    }

    /// Ends a session's turn: takes a snapshot and saves it, with `notes` of the program.
    ///
    /// # Errors
    /// As [`Sessions::step`], and when the folder cannot take the file; the session goes on then, with the file of the turn before.
    pub fn end_turn(&mut self, name: &str, notes: Option<&[u8]>) -> Result<(), KeepError> {
        let ids = self.session(name)?.ids.clone();
        if self.engine.ids() != ids {
            self.prompt(name, &ids)?;
        }
        self.engine.snapshot()?;
        let session = self.open.get_mut(name).ok_or_else(|| KeepError::Unknown { name: name.to_owned() })?;
        session.file.save(&self.keeper, &mut self.engine, notes)?;
        session.notes = notes.map(<[u8]>::to_vec);
        session.used = Instant::now();
        Ok(())
    }

    /// Parks the sessions that were not used for long; their names. Those in the middle of a turn stay.
    pub fn park_idle(&mut self) -> Vec<String> {
        let idle = self.options.idle;
        let parks = |session: &Session| session.used.elapsed() >= idle && session.file.saved_ids() == session.ids;
        let names: Vec<String> =
            self.open.iter().filter(|(_, session)| parks(session)).map(|(name, _)| name.clone()).collect();
        for name in &names {
            self.forget(name);
        }
        names
    }

    /// Ends a session, and deletes its file.
    ///
    /// # Errors
    /// When another session needs the file.
    pub fn delete(&mut self, name: &str) -> Result<(), KeepError> {
        match TurnFile::delete(&self.keeper, name) {
            Err(KeepError::Session(SessionError::NotFound { .. })) if self.open.contains_key(name) => {}
            result => result?,
        }
        self.forget(name);
        Ok(())
    }

    /// Gives the engine back.
    pub fn into_engine(self) -> Engine {
        self.engine
    }

    fn forget(&mut self, name: &str) {
        if let Some(session) = self.open.remove(name) {
            self.engine.forget(&session.ids);
        }
        if self.live.as_deref() == Some(name) {
            self.live = None;
        }
    }

    fn session(&mut self, name: &str) -> Result<&mut Session, KeepError> {
        self.open.get_mut(name).ok_or_else(|| KeepError::Unknown { name: name.to_owned() })
    }

    /// Makes a session the engine's one.
    fn enter(&mut self, name: &str) -> Result<(), KeepError> {
        if self.live.as_deref() != Some(name) {
            self.leave()?;
            self.live = Some(name.to_owned());
        }
        Ok(())
    }

    /// Keeps what the live session has in the engine alone, if the bank has room for it.
    fn leave(&mut self) -> Result<(), KeepError> {
        if self.live.take().is_some() {
            self.engine.snapshot()?;
        }
        Ok(())
    }
}
