//! Export as a table in a Parquet file: columns `mover_a` to `mover_f`, `opponent_a` to `opponent_f`
//! (unsigned, 8 bits) and `score` (signed, 8 bits), a row for each position in canonical order. Of a database
//! of pairs there are columns `low` and `high` before `score`, which is null where they differ.
//!
//! Columns are dictionary encoded, which packs a pit into the bits it needs, and compressed with Zstandard. The columns
//! of a row group of 2^18 positions are encoded in parallel, and row groups are written in order: some 20 MiB are held
//! for any size of a database. The metadata contain stones, rules, position set and content digest, under keys
//! `awari.stones` and so on.
//!
//! Written with the crate `parquet` of the Arrow project without Arrow itself.

use super::Exporter;
use super::sink::ExportSink;
use crate::error::ExchangeError;
use bytes::Bytes;
use game::{HALF_PITS, Index, Score};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnDescPtr;
use rayon::prelude::*;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Positions of a row group.
const GROUP_POSITIONS: u64 = 1 << 18;

/// The pits of a position.
const PITS: usize = 2 * HALF_PITS;

const LETTERS: [char; HALF_PITS] = ['a', 'b', 'c', 'd', 'e', 'f'];

/// Writes `NN.parquet`.
pub(crate) fn write(exporter: &mut Exporter<'_>) -> Result<(), ExchangeError> {
    let index = exporter.index;
    let positions = index.positions();
    let name = format!("{:02}.parquet", index.stones());
    let path = exporter.path(&name);
    let failure = Arc::new(Mutex::new(None));
    let broken = |error: ParquetError| {
        let sinks = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        sinks.unwrap_or_else(|| ExchangeError::Encoder { path: path.clone(), what: error.to_string() })
    };
    let target = EncoderSink { sink: exporter.begin(&name, 0)?, failure: Arc::clone(&failure) };
    let schema = parse_message_type(&schema(exporter.has_pairs)).expect("the schema is a text of ours");
    let properties = Arc::new(properties(exporter));
    let mut writer = SerializedFileWriter::new(target, Arc::new(schema), Arc::clone(&properties)).map_err(broken)?;
    let descriptors = writer.schema_descr().columns().to_vec();
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for first in (0..positions).step_by(GROUP_POSITIONS as usize) {
        exporter.check_stop()?;
        let here = first..positions.min(first + GROUP_POSITIONS);
        exporter.read(here.clone(), &mut low, &mut high)?;
        let chunks: Vec<_> = (0..descriptors.len())
            .into_par_iter()
            .map(|column| {
                let signed = |values: &[Score]| values.iter().map(|&value| i32::from(value)).collect();
                let (values, is_there) = match column.checked_sub(PITS) {
                    None => (stones_in(index, column, here.clone()), None),
                    Some(0) => (signed(&low), None),
                    Some(1) => (signed(&high), None),
                    Some(_) => {
                        let both = || low.iter().zip(&high);
                        let exact = both().filter(|(low, high)| low == high).map(|(&low, _)| i32::from(low)).collect();
                        (exact, Some(both().map(|(low, high)| i16::from(low == high)).collect::<Vec<i16>>()))
                    }
                };
                encode(&descriptors[column], &properties, &values, is_there.as_deref())
            })
            .collect::<Result<_, _>>()
            .map_err(broken)?;
        let mut group = writer.next_row_group().map_err(broken)?;
        for (bytes, close) in chunks {
            group.append_column(&bytes, close).map_err(broken)?;
        }
        group.close().map_err(broken)?;
    }
    let target = writer.into_inner().map_err(broken)?;
    exporter.finish(&name, target.sink)
}

fn schema(has_pairs: bool) -> String {
    let sides = ["mover", "opponent"];
    let pits =
        sides.iter().flat_map(|side| LETTERS.map(|pit| format!("required int32 {side}_{pit} (integer(8, false));")));
    let values = if has_pairs {
        ["required int32 low", "required int32 high", "optional int32 score"]
            .map(|column| format!("{column} (integer(8, true));"))
            .concat()
    } else {
        "required int32 score (integer(8, true));".to_owned()
    };
    format!("message awari {{ {} {values} }}", pits.collect::<String>())
}

fn properties(exporter: &Exporter<'_>) -> WriterProperties {
    let identity = exporter.scores.identity();
    let entries = [
        ("awari.stones", identity.stones.to_string()),
        ("awari.rules", identity.rules.clone()),
        ("awari.positions", identity.positions.clone()),
        ("awari.digest", exporter.scores.digest().to_string()),
    ];
    let entries = entries.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    WriterProperties::builder()
        .set_created_by("awari".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Statistics of single pages would take more space than they save.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(entries.to_vec()))
        .build()
}

/// The stones in one pit of consecutive positions.
fn stones_in(index: &Index, pit: usize, positions: Range<u64>) -> Vec<i32> {
    let mut values = Vec::with_capacity((positions.end - positions.start) as usize);
    for slab in index.slabs() {
        let end = slab.offset + slab.positions();
        let mut position = positions.start.max(slab.offset);
        let columns = u64::from(slab.mover_halves);
        while position < positions.end.min(end) {
            let (row, column) = ((position - slab.offset) / columns, (position - slab.offset) % columns);
            let count = (columns - column).min(positions.end - position);
            match pit.checked_sub(HALF_PITS) {
                None => values.extend(
                    (column..column + count)
                        .map(|column| i32::from(index.halves().unrank(slab.mover_stones, column as u32)[pit])),
                ),
                Some(pit) => {
                    let stones = index.unrank_opponent(slab.opponent_stones, row as u32)[pit];
                    values.resize(values.len() + count as usize, i32::from(stones));
                }
            }
            position += count;
        }
    }
    // The opening follows all slabs.
    if let Some(opening) = index.opening().filter(|_| positions.end > index.slab_positions()) {
        values.push(i32::from(opening.board().0[pit]));
    }
    values
}

/// The bytes of a column of a row group. An optional column has `is_there`, 1 or 0 of each row, and values
/// where it is 1.
fn encode(
    descriptor: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
    values: &[i32],
    is_there: Option<&[i16]>,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut sink));
    let mut writer = get_column_writer(Arc::clone(descriptor), Arc::clone(properties), pages);
    match &mut writer {
        ColumnWriter::Int32ColumnWriter(writer) => writer.write_batch(values, is_there, None)?,
        _ => unreachable!("all columns are int32 in the schema"),
    };
    let close = writer.close()?;
    Ok((Bytes::from(sink.into_inner()?), close))
}

/// Adapter from [`ExportSink`] to the writer that the encoder requires. It keeps errors, because the encoder returns
/// only their text.
struct EncoderSink<'a> {
    sink: ExportSink<'a>,
    failure: Arc<Mutex<Option<ExchangeError>>>,
}

impl Write for EncoderSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes).map_err(|error| {
            let text = error.to_string();
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            io::Error::other(text)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
