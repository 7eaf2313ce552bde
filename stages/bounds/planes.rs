//! Files of planes: their names, identities and layout.
//!
//! A plane is stored as a matrix of bytes: a row of the file is a row of a slab, with little-endian words. A file of
//! seeds has one plane for each bound, interleaved by groups of units: slabs, groups in a slab, descending bounds in a
//! group.

mod reader;
mod seeds_reader;
mod writer;

pub(crate) use reader::PlaneReader;
pub(crate) use seeds_reader::SeedsReader;
pub(crate) use writer::{PlanePortion, PlaneWriter};

use crate::files;
use game::{Index, Orientation};
use pipeline::ArtifactName;
use planner::{SEEDS_GROUP_WORDS, Settings};
use solvers::bounds::{PlaneLayout, PlaneUnit};
use std::ops::Range;
use store::{FileKind, Identity, Role, Shape, SlabShape};

/// A kind of file of planes, of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaneFile {
    /// By bound, the positions with a best capture of that score, `MoverMajor`.
    WinSeeds,
    /// By bound, the positions in which captures prevent a loss at higher bounds only, `MoverMajor`.
    CandidateSeeds,
    /// Positions that a capture wins at the bound but not at higher ones, `OpponentMajor`.
    Seed(u32),
    /// Positions won at the bound but not at higher ones, `OpponentMajor`.
    Won(u32),
    /// Positions lost at the bound but not at higher ones, `MoverMajor`.
    Lost(u32),
    /// As [`Lost`](Self::Lost), `OpponentMajor`.
    Decided(u32),
}

impl PlaneFile {
    pub(crate) fn name(self, stones: u32) -> ArtifactName {
        let file = match self {
            PlaneFile::WinSeeds => "win.seeds".to_owned(),
            PlaneFile::CandidateSeeds => "candidate.seeds".to_owned(),
            PlaneFile::Seed(bound) => format!("{bound:02}.seed"),
            PlaneFile::Won(bound) => format!("{bound:02}.won"),
            PlaneFile::Lost(bound) => format!("{bound:02}.lost"),
            PlaneFile::Decided(bound) => format!("{bound:02}.plane"),
        };
        ArtifactName::new(PlaneFile::folder(stones) + &file).expect("names are made of letters, digits and slashes")
    }

    /// Returns the prefix of the names of all planes of a database.
    pub(crate) fn folder(stones: u32) -> String {
        format!("planes/{stones:02}/")
    }

    /// Returns the content of the artifact, in words.
    pub(crate) fn content(self) -> &'static str {
        match self {
            PlaneFile::WinSeeds => "win seeds",
            PlaneFile::CandidateSeeds => "candidate seeds",
            PlaneFile::Seed(_) => "seed",
            PlaneFile::Won(_) => "won",
            PlaneFile::Lost(_) => "lost",
            PlaneFile::Decided(_) => "plane",
        }
    }

    pub(crate) fn orientation(self) -> Orientation {
        match self {
            PlaneFile::WinSeeds | PlaneFile::CandidateSeeds | PlaneFile::Lost(_) => Orientation::MoverMajor,
            _ => Orientation::OpponentMajor,
        }
    }

    /// Returns the groups of units of the plane's layout.
    pub(crate) fn groups(self, index: &Index) -> Vec<UnitGroup> {
        UnitGroup::all(&PlaneLayout::new(index, self.orientation()).units())
    }

    /// Returns the bound, 0 for files with all bounds.
    pub(crate) fn bound(self) -> u32 {
        match self {
            PlaneFile::WinSeeds | PlaneFile::CandidateSeeds => 0,
            PlaneFile::Seed(bound) | PlaneFile::Won(bound) | PlaneFile::Lost(bound) | PlaneFile::Decided(bound) => {
                bound
            }
        }
    }

    /// Returns the kind of file for the content of an artifact, if that is a plane.
    pub(crate) fn kind_of(content: &str, bound: u32) -> Option<FileKind> {
        let each = [PlaneFile::Seed(bound), PlaneFile::Won(bound), PlaneFile::Lost(bound), PlaneFile::Decided(bound)];
        let all = [PlaneFile::WinSeeds, PlaneFile::CandidateSeeds].into_iter().chain(each);
        all.into_iter().find(|plane| plane.content() == content).map(PlaneFile::kind)
    }

    /// Returns the file for a role.
    pub(crate) fn of(role: Role, bound: u32) -> PlaneFile {
        match role {
            Role::WinSeeds => PlaneFile::WinSeeds,
            Role::CandidateSeeds => PlaneFile::CandidateSeeds,
            Role::Seed => PlaneFile::Seed(bound),
            Role::Won => PlaneFile::Won(bound),
            Role::Lost => PlaneFile::Lost(bound),
            Role::Decided => PlaneFile::Decided(bound),
        }
    }

    pub(crate) fn kind(self) -> FileKind {
        let role = match self {
            PlaneFile::WinSeeds => Role::WinSeeds,
            PlaneFile::CandidateSeeds => Role::CandidateSeeds,
            PlaneFile::Seed(_) => Role::Seed,
            PlaneFile::Won(_) => Role::Won,
            PlaneFile::Lost(_) => Role::Lost,
            PlaneFile::Decided(_) => Role::Decided,
        };
        FileKind::Plane { role, bound: self.bound() as u8 }
    }

    fn identity(self, settings: &Settings, stones: u32) -> Identity {
        files::identity(settings.rules.name, settings.set, self.kind(), stones)
    }

    fn shape(self, layout: &PlaneLayout, stones: u32) -> Shape {
        let planes = if matches!(self, PlaneFile::WinSeeds | PlaneFile::CandidateSeeds) { stones } else { 1 };
        let slabs = layout
            .slabs()
            .iter()
            .map(|slab| SlabShape { rows: slab.rows as u32 * planes, columns: slab.row_words as u32 * 8 });
        Shape::new(slabs.collect()).expect("an index has 1 to 49 slabs, none of them empty")
    }
}

/// A group of units in a file of seeds.
pub(crate) struct UnitGroup {
    pub(crate) slab: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) words: Range<usize>,
    /// Units, in the list of all.
    pub(crate) units: Range<usize>,
}

impl UnitGroup {
    /// Returns the groups of a layout.
    pub(crate) fn all(units: &[PlaneUnit]) -> Vec<UnitGroup> {
        let mut groups: Vec<UnitGroup> = Vec::new();
        for (number, unit) in units.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if group.slab == unit.slab && unit.words.end - group.words.start <= SEEDS_GROUP_WORDS => {
                    group.rows.end = unit.rows.end;
                    group.words.end = unit.words.end;
                    group.units.end = number + 1;
                }
                _ => groups.push(UnitGroup {
                    slab: unit.slab,
                    rows: unit.rows.clone(),
                    words: unit.words.clone(),
                    units: number..number + 1,
                }),
            }
        }
        groups
    }

    /// Returns the words of the group in a file of seeds with this many bounds.
    fn seeds(&self, bound: u32, bounds: u32) -> Range<usize> {
        let first = self.words.start * bounds as usize + self.words.len() * (bounds - bound) as usize;
        first..first + self.words.len()
    }

    /// Returns the consecutive groups that overlap `words`. `words` counts those of all `planes` planes of a group.
    pub(crate) fn overlapping<'g>(groups: &'g [UnitGroup], words: &Range<usize>, planes: usize) -> &'g [UnitGroup] {
        let first = groups.partition_point(|group| group.words.end * planes <= words.start);
        let end = groups.partition_point(|group| group.words.start * planes < words.end);
        &groups[first.min(end)..end]
    }

    /// Returns the words of consecutive groups.
    pub(crate) fn words_of_all(groups: &[UnitGroup]) -> Range<usize> {
        match groups {
            [first, .., last] => first.words.start..last.words.end,
            [only] => only.words.clone(),
            [] => 0..0,
        }
    }

    /// Splits `words`, which are those of the group, by units.
    pub(crate) fn split<'a>(
        &'a self,
        units: &'a [PlaneUnit],
        words: &'a mut [u64],
    ) -> Vec<(usize, &'a PlaneUnit, &'a mut [u64])> {
        let mut rest = words;
        let split = self.units.clone().map(|number| {
            let (now, after) = std::mem::take(&mut rest).split_at_mut(units[number].words.len());
            rest = after;
            (number, &units[number], now)
        });
        split.collect()
    }
}
