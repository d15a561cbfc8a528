//! Which pages of each card's bank are free.

use std::collections::BTreeSet;

/// Pages of each card, `[card][page]`.
pub(super) type CardPages = Vec<Vec<u32>>;

/// How many pages there are on all cards.
pub(super) fn count(pages: &[Vec<u32>]) -> usize {
    pages.iter().map(Vec::len).sum()
}

/// The free pages of each card; the lowest are given first, so that the same calls give the same pages.
#[derive(Debug)]
pub(super) struct FreePages {
    free: Vec<BTreeSet<u32>>,
}

impl FreePages {
    /// So many pages of each card, all free.
    ///
    /// # Panics
    /// If a card has more than 2^32 pages less one.
    pub fn new(pages: impl Iterator<Item = usize>) -> FreePages {
        let card = |pages| (0..u32::try_from(pages).expect("pages of a card are fewer than 2^32")).collect();
        FreePages { free: pages.map(card).collect() }
    }

    /// How many pages are free on all cards.
    pub fn count(&self) -> usize {
        self.free.iter().map(BTreeSet::len).sum()
    }

    /// Whether each card has so many.
    pub fn has(&self, needs: &[usize]) -> bool {
        self.free.iter().zip(needs).all(|(free, need)| free.len() >= *need)
    }

    /// Takes so many pages of each card.
    ///
    /// # Panics
    /// If a card has fewer; [`FreePages::has`] tells.
    pub fn take(&mut self, needs: impl Iterator<Item = usize>) -> CardPages {
        let taken = self.free.iter_mut().zip(needs);
        let page = |free: &mut BTreeSet<u32>| free.pop_first().expect("there are as many free pages as are taken");
        taken.map(|(free, need)| (0..need).map(|_| page(free)).collect()).collect()
    }

    /// Gives pages back that were taken.
    pub fn give_back(&mut self, pages: CardPages) {
        for (free, pages) in self.free.iter_mut().zip(pages) {
            free.extend(pages);
        }
    }
}
