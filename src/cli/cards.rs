//! Devices and cards as the option `--device` names them.

use anyhow::{Error, Result};

use crate::device::{Card, CardsError, DeviceInfo, choose};

/// One device, as [`choose::choose_device`] has it.
pub fn choose_device(wanted: Option<&str>) -> Result<DeviceInfo> {
    choose::choose_device(wanted).map_err(named)
}

/// Cards, as [`choose::choose_cards`] has them.
pub fn choose_cards(wanted: Option<&str>) -> Result<Vec<Card>> {
    choose::choose_cards(wanted).map_err(named)
}

/// The error with the option that it is about.
pub fn named(error: CardsError) -> Error {
    match error {
        CardsError::Device(error) => error.into(),
        CardsError::NoDevice { .. } => error.into(),
        wanted => Error::new(wanted).context("--device"),
    }
}

/// The cards in words.
pub fn names(cards: &[Card]) -> String {
    let name = |card: &Card| format!("{} ({})", card.info().name, card.info().backend);
    let mut text = String::new();
    let mut rest = cards;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|card| name(card) == name(first)).count();
        let count = if same > 1 { format!("{same} x ") } else { String::new() };
        text += &format!("{}{count}{}", if text.is_empty() { "" } else { ", " }, name(first));
        rest = &rest[same..];
    }
    text
}
