//! Parquet files for DuckDB, pandas, Polars or Spark: the tables of `sheets` with their types. An empty cell is null.
//! One row group: the largest table, all samples of a run, has some hundred thousand rows. Start reading at [`OUTPUT`].

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::measured::{of_load, of_run};
use crate::sheet::{Cell, Kind, Sheet};
use crate::sheets::{figures, samples_of_load, samples_of_run, visits};
use crate::{Output, Render, Written};

/// Visits of a run, or the requests of a load.
pub(crate) static OUTPUT: Output = Output {
    name: "parquet",
    extension: "parquet",
    about: "every visit of a run, or the single requests of a load, for DuckDB or pandas",
    written: Written::OnRequest,
    run: Some(Render::Bytes(|record| file(&visits(record)))),
    load: Some(Render::Bytes(|record| file(&samples_of_load(record)))),
};

/// Single requests, also of a run.
pub(crate) static SAMPLES: Output = Output {
    name: "samples-parquet",
    extension: "samples.parquet",
    about: "single requests with all their instants, for DuckDB or pandas",
    written: Written::OnRequest,
    run: Some(Render::Bytes(|record| file(&samples_of_run(record)))),
    load: Some(Render::Bytes(|record| file(&samples_of_load(record)))),
};

/// Figures, one a row.
pub(crate) static FIGURES: Output = Output {
    name: "figures-parquet",
    extension: "figures.parquet",
    about: "every figure with its unit, one a row, for DuckDB or pandas",
    written: Written::OnRequest,
    run: Some(Render::Bytes(|record| file(&figures(of_run(record))))),
    load: Some(Render::Bytes(|record| file(&figures(of_load(record))))),
};

fn file(sheet: &Sheet) -> Vec<u8> {
    written(sheet).expect("memory can be written to, and every cell is of its column's kind")
}

fn written(sheet: &Sheet) -> Result<Vec<u8>> {
    let fields = sheet.columns.iter().map(|&(name, kind)| field(name, kind).map(Arc::new));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("joust").with_fields(fields).build()?;
    let properties =
        WriterProperties::builder().set_compression(Compression::GZIP(Default::default())).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let mut index = 0;
    while let Some(column) = group.next_column()? {
        let cells = sheet.rows.iter().map(|row| &row[index]);
        match sheet.columns[index].1 {
            Kind::Text => put::<ByteArrayType>(column, cells, |cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            }),
            Kind::Count => put::<Int64Type>(column, cells, |cell| match cell {
                Cell::Count(count) => Some(i64::try_from(*count).unwrap_or(i64::MAX)),
                _ => None,
            }),
            Kind::Figure => put::<DoubleType>(column, cells, |cell| match cell {
                Cell::Figure(figure) => Some(*figure),
                _ => None,
            }),
            Kind::Flag => put::<BoolType>(column, cells, |cell| match cell {
                Cell::Flag(flag) => Some(*flag),
                _ => None,
            }),
        }?;
        index += 1;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn field(name: &str, kind: Kind) -> Result<Type> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (Physical::INT64, None),
        Kind::Figure => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// Writes a column: the values that are there, and for each row whether it has one.
fn put<'a, T: DataType>(
    mut column: SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = cells.map(value).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let there: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&there, Some(&levels), None)?;
    column.close()
}
