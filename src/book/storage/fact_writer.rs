//! Writing the facts of a book.

use super::key_of;
use super::rows::{EXPANSION, POSITION, ROOT, RowWriter, impossible};
use super::state::BookState;
use crate::assess::Assessed;
use crate::awari::AwariGame;
use crate::game::Assessment;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::collections::HashMap;

/// Facts that are entered in a transaction.
pub(super) struct FactWriter<'a> {
    pub(super) connection: &'a Connection,
    pub(super) engine: i64,
    pub(super) state: &'a mut BookState,
    /// What enters positions and expansions, once it is needed.
    pub(super) writers: Option<(RowWriter<'a>, RowWriter<'a>)>,
}

impl<'a> FactWriter<'a> {
    fn writers(&mut self) -> rusqlite::Result<&mut (RowWriter<'a>, RowWriter<'a>)> {
        let writers = match self.writers.take() {
            Some(writers) => writers,
            None => (POSITION.writer(self.connection)?, EXPANSION.writer(self.connection)?),
        };
        Ok(self.writers.insert(writers))
    }

    /// Counts a row that was entered.
    pub(super) fn count(&mut self, checksum: i64, rows: impl FnOnce(&mut BookState) -> &mut u64) {
        self.state.facts = self.state.facts.wrapping_add(checksum);
        *rows(self.state) += 1;
    }

    pub(super) fn enter_root(&mut self, key: u64, assessed: &Assessed) -> rusqlite::Result<()> {
        let pits = AwariGame::board(key).0;
        let has = |table| {
            let query = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE pits = ?1)");
            self.connection.query_row(&query, [pits], |row| row.get::<_, bool>(0))
        };
        if has("root")? {
            return Ok(());
        }
        if !has("position")? {
            self.enter(&[(key, *assessed)])?;
        }
        let number = self.state.roots as i64 + 1;
        let row = [ValueRef::Integer(number), ValueRef::Blob(&pits)];
        let checksum = ROOT.writer(self.connection)?.enter(&row)?;
        self.count(checksum, |state| &mut state.roots);
        Ok(())
    }

    /// Numbers are those that the writer counts. So an expansion is not entered twice, also if its first
    /// transaction was committed in spite of an error.
    pub(super) fn enter_expansion(
        &mut self,
        key: u64,
        chosen: Option<u64>,
        successors: &[(u64, Assessed)],
    ) -> rusqlite::Result<()> {
        self.enter(successors)?;
        let (number, pits) = (self.state.expansions as i64 + 1, AwariGame::board(key).0);
        let chosen = chosen.map_or(ValueRef::Null, |chosen| ValueRef::Integer(chosen as i64));
        let checksum = self.writers()?.1.enter(&[ValueRef::Integer(number), ValueRef::Blob(&pits), chosen])?;
        self.count(checksum, |state| &mut state.expansions);
        Ok(())
    }

    fn enter(&mut self, positions: &[(u64, Assessed)]) -> rusqlite::Result<()> {
        for (key, assessed) in positions {
            let (number, pits) = (self.state.positions as i64 + 1, AwariGame::board(*key).0);
            let row = position_row(number, &pits, assessed, self.engine);
            let checksum = self.writers()?.0.enter(&row)?;
            self.count(checksum, |state| &mut state.positions);
        }
        Ok(())
    }

    pub(super) fn replace(&mut self, positions: &[(u64, Assessed)]) -> rusqlite::Result<()> {
        let connection = self.connection;
        let mut rows = connection.prepare("SELECT pits, number, checksum FROM position")?;
        let known = rows.query_map([], |row| Ok((key_of(row, 0)?, (row.get(1)?, row.get(2)?))))?;
        let known: HashMap<u64, (i64, i64)> = known.collect::<rusqlite::Result<_>>()?;
        let mut writer = RowWriter::of(connection.prepare(&POSITION.replacement())?, POSITION.name);
        for (key, assessed) in positions {
            let &(number, before) = known.get(key).ok_or_else(|| impossible(0, "a position is missing"))?;
            let pits = AwariGame::board(*key).0;
            let after = writer.enter(&position_row(number, &pits, assessed, self.engine))?;
            self.state.facts = self.state.facts.wrapping_sub(before).wrapping_add(after);
        }
        Ok(())
    }
}

/// Returns the columns of a row of `position`.
fn position_row<'p>(number: i64, pits: &'p [u8; 12], assessed: &Assessed, engine: i64) -> [ValueRef<'p>; 8] {
    let Assessed { assessment: Assessment { low, high, estimate }, depth, nodes } = *assessed;
    [
        ValueRef::Integer(number),
        ValueRef::Blob(pits),
        ValueRef::Integer(low.into()),
        ValueRef::Integer(high.into()),
        ValueRef::Integer(estimate.into()),
        ValueRef::Integer(depth.into()),
        ValueRef::Integer(nodes as i64),
        ValueRef::Integer(engine),
    ]
}
