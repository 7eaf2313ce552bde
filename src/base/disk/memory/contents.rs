//! A file in memory: what a process sees, what is durable, and what a loss of power makes of the difference.

use super::faults::RandomBits;
use std::collections::BTreeSet;
use std::ops::Range;

/// The bytes that a disk writes as a unit: all or none.
const SECTOR_BYTES: usize = 512;
/// The bytes that an operating system usually writes as a unit: a page.
const PAGE_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct FileContents {
    pub(super) bytes: Vec<u8>,
    durable: Vec<u8>,
    pub(super) bytes_reserved: u64,
    /// Sectors dropped by a failed sync: later syncs treat them as already written.
    given_up: BTreeSet<usize>,
}

impl FileContents {
    pub(super) fn durable(bytes: &[u8]) -> FileContents {
        FileContents { bytes: bytes.to_vec(), durable: bytes.to_vec(), ..FileContents::default() }
    }

    pub(super) fn scratch(bytes: u64) -> FileContents {
        FileContents { bytes: vec![0; bytes as usize], ..FileContents::default() }
    }

    /// Truncates the file or extends it with zeros, durably; earlier writes become durable as well.
    pub(super) fn resize(&mut self, bytes: u64) {
        self.bytes.resize(bytes as usize, 0);
        self.given_up.clear();
        self.sync();
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        // A rewritten sector is dirty again.
        self.given_up.remove(&(self.bytes.len() / SECTOR_BYTES));
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn cut(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
        self.given_up.retain(|&sector| sector < bytes / SECTOR_BYTES);
        self.sync();
    }

    pub(super) fn sync(&mut self) {
        let mut synced = self.bytes.clone();
        for &sector in &self.given_up {
            let place = sector_of(&synced, sector);
            copy_or_zero(&mut synced, place, &self.durable);
        }
        self.durable = synced;
    }

    /// Fails a sync: some dirty sectors become durable, the others are dropped. The operating system marks them clean,
    /// and processes may or may not continue to read their content (LWN 752063, "PostgreSQL's fsync() surprise").
    pub(super) fn fail_to_sync(&mut self, random: &mut RandomBits) {
        let forgets = random.coin();
        for sector in 0..self.bytes.len().div_ceil(SECTOR_BYTES) {
            let place = sector_of(&self.bytes, sector);
            if self.durable.get(place.clone()) != Some(&self.bytes[place.clone()]) && random.coin() {
                self.given_up.insert(sector);
            }
        }
        self.sync();
        if forgets {
            self.bytes = self.durable.clone();
            self.given_up.clear();
        }
    }

    /// Simulates a loss of power after which only synced bytes remain.
    pub(super) fn crash(&mut self) {
        self.bytes = self.durable.clone();
        self.given_up.clear();
        self.bytes_reserved = 0;
    }

    /// Simulates a loss of power after which the first `bytes_max` of the unsynced appended bytes remain.
    pub(super) fn crash_torn(&mut self, bytes_max: usize) {
        if self.bytes.starts_with(&self.durable) {
            let kept = self.bytes.len().min(self.durable.len() + bytes_max);
            self.bytes.truncate(kept);
        }
        self.durable = self.bytes.clone();
        self.crash();
    }

    /// Simulates a loss of power after which a random part of the unsynced writes remains.
    pub(super) fn crash_anyhow(&mut self, random: &mut RandomBits) {
        if self.bytes != self.durable {
            let (old, new) = (self.durable.len(), self.bytes.len());
            match random.up_to(4) {
                0 => {}
                1 => self.durable = self.bytes.clone(),
                // The length and the first of the new bytes.
                2 => {
                    let kept = old.min(new) + random.up_to(new.abs_diff(old));
                    self.keep(kept, 1, &mut |_| true);
                }
                // Sectors or pages in any order, for either length.
                way => {
                    let unit = if way == 3 { SECTOR_BYTES } else { PAGE_BYTES };
                    let length = old.min(new) + random.up_to(new.abs_diff(old));
                    self.keep(length, unit, &mut |_| random.coin());
                }
            }
        }
        self.crash();
    }

    /// Sets the length of the file, and keeps the new bytes of the units for which `is_kept` returns true.
    fn keep(&mut self, length: usize, unit: usize, is_kept: &mut dyn FnMut(usize) -> bool) {
        let mut bytes = vec![0; length];
        for start in (0..length).step_by(unit) {
            let place = start..length.min(start + unit);
            let from = if is_kept(start) { &self.bytes } else { &self.durable };
            copy_or_zero(&mut bytes, place, from);
        }
        self.durable = bytes;
    }
}

fn sector_of(bytes: &[u8], sector: usize) -> Range<usize> {
    sector * SECTOR_BYTES..bytes.len().min((sector + 1) * SECTOR_BYTES)
}

/// Copies a range from another version of the file; bytes beyond the end of that version are zeros.
fn copy_or_zero(into: &mut [u8], place: Range<usize>, from: &[u8]) {
    let end = place.end.min(from.len()).max(place.start);
    let known = from.get(place.start..end).unwrap_or(&[]);
    let (copied, zeros) = into[place].split_at_mut(known.len());
    copied.copy_from_slice(known);
    zeros.fill(0);
}
