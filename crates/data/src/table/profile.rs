//! What a file holds in each column, before there is a schema.

use super::schema::{Decimal, MISSING};
use super::values::{Missing, number};
use crate::decode::Flaw;
use crate::decode::table::Table;
use std::collections::{BTreeMap, HashSet};

/// More different texts than this make a column an identifier, not a category.
pub(crate) const CATEGORIES: usize = 64;
/// More different labels than this are not classes.
pub(crate) const CLASSES: usize = 10_000;

/// What one column holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Number of missing values.
    pub missing: u64,
    /// Number of numbers with a decimal point or none.
    pub points: u64,
    /// Number of further numbers, with a decimal comma.
    pub commas: u64,
    /// Number of those that may as well have a thousands separator, such as 2,592.
    pub grouped: u64,
    /// Whether a number has a decimal point.
    pub with_point: bool,
    /// Number of other texts.
    pub texts: u64,
    /// Row and text of the first number with a decimal comma.
    pub first_comma: Option<(u64, String)>,
    /// Row and text of the first value that is not a number.
    pub first_text: Option<(u64, String)>,
    /// The least and the greatest number.
    pub range: Option<[f64; 2]>,
    /// The different values, and how often each occurs; complete unless there are too many.
    pub distinct: BTreeMap<String, u64>,
    /// Whether there are more different values than are kept.
    pub many: bool,
    /// The first different values, in the order of the file.
    pub examples: Vec<String>,
    /// The whole numbers so far, as long as each occurs once; `None` as soon as one is repeated or a value is none.
    different: Option<HashSet<u64>>,
}

/// What the columns of one file hold.
#[derive(Clone, Debug)]
pub struct Profiles {
    /// The file.
    pub file: String,
    /// Number of rows.
    pub rows: u64,
    /// Number of rows that have a label, and an owner if there is a column of owners; only these are described.
    pub kept: u64,
    /// The character between two fields.
    pub separator: u8,
    /// Column by column.
    pub columns: Vec<Profile>,
}

/// Fewer values than this are often all different.
const FEWEST_DIFFERENT: u64 = 20;
/// Number of different whole numbers after which no more are compared.
const MOST_DIFFERENT: usize = 100_000;
/// Examples that are shown of a column.
const EXAMPLES: usize = 3;
/// Longest text that is kept as a category, in bytes.
const LONGEST: usize = 1000;

impl Profiles {
    /// Reads all rows; those without a label or an owner are only counted.
    pub fn of(table: &Table, label: &str, group: Option<&str>) -> Result<Self, Flaw> {
        let missing = MISSING.map(str::to_owned);
        let missing = Missing::new(missing.iter(), Decimal::Point);
        let mut columns: Vec<Profile> = table.names.iter().map(|name| Profile::new(name)).collect();
        let needed: Vec<usize> =
            [Some(label), group].into_iter().flatten().filter_map(|name| table.column(name)).collect();
        let most = |place: usize| if Some(&place) == needed.first() { CLASSES } else { CATEGORIES };
        let most: Vec<usize> = (0..columns.len()).map(most).collect();
        let each = columns.len().div_ceil(table.threads()).max(1);
        let parts: Vec<Result<[u64; 2], Flaw>> = std::thread::scope(|scope| {
            let (needed, most, missing) = (&needed, &most, &missing);
            let mut threads = Vec::new();
            for (number, part) in columns.chunks_mut(each).enumerate() {
                let first = number * each;
                threads.push(scope.spawn(move || read_part(table, needed, most, missing, first, part)));
            }
            threads.into_iter().map(|thread| thread.join().expect("reading does not panic")).collect()
        });
        let [mut count, mut kept] = [0, 0];
        for part in parts {
            [count, kept] = part?;
        }
        let (file, separator) = (table.file().to_owned(), table.separator);
        Ok(Self { file, rows: count, kept, separator, columns })
    }
}

/// Reads some of the columns, of which the first is column `first`; the number of rows, and of rows that count.
fn read_part(
    table: &Table,
    needed: &[usize],
    most: &[usize],
    missing: &Missing,
    first: usize,
    columns: &mut [Profile],
) -> Result<[u64; 2], Flaw> {
    let (mut rows, mut count, mut kept) = (table.rows(), 0, 0);
    while let Some(row) = rows.next()? {
        count = row.number;
        if let Some(place) = needed.iter().find(|place| missing.text(row.field(**place))) {
            if let Some(column) = place.checked_sub(first).and_then(|place| columns.get_mut(place)) {
                column.missing += 1;
            }
            continue;
        }
        kept += 1;
        for (place, column) in (first..).zip(&mut *columns) {
            column.add(row.field(place), most[place], missing, row.number);
        }
    }
    Ok([count, kept])
}

impl Profile {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            missing: 0,
            points: 0,
            with_point: false,
            commas: 0,
            grouped: 0,
            texts: 0,
            first_comma: None,
            first_text: None,
            range: None,
            distinct: BTreeMap::new(),
            many: false,
            examples: Vec::new(),
            different: Some(HashSet::new()),
        }
    }

    /// Whether every row has another whole number, as in an index or a list of patients' numbers.
    pub fn identifies(&self) -> bool {
        self.different.is_some() && self.present() >= FEWEST_DIFFERENT
    }

    /// Number of values that are not missing.
    pub fn present(&self) -> u64 {
        self.points + self.commas + self.texts
    }

    fn add(&mut self, field: &str, most: usize, missing: &Missing, row: u64) {
        let mut found = number(field, Decimal::Point);
        if found.is_some() {
            self.points += 1;
            self.with_point |= field.contains('.');
        } else if missing.text(field) {
            self.missing += 1;
            return;
        } else {
            found = number(field, Decimal::Comma);
            let (count, first) = match found {
                Some(_) => (&mut self.commas, &mut self.first_comma),
                None => (&mut self.texts, &mut self.first_text),
            };
            *count += 1;
            first.get_or_insert_with(|| (row, field.to_owned()));
            self.grouped += u64::from(found.is_some() && grouped(field));
        }
        self.compare(found);
        if let Some(x) = found {
            let [least, greatest] = self.range.unwrap_or([x, x]);
            self.range = Some([least.min(x), greatest.max(x)]);
        }
        if !self.many {
            self.count(field, most);
        }
    }

    /// Keeps a whole number if it occurs for the first time.
    fn compare(&mut self, found: Option<f64>) {
        let Some(different) = &mut self.different else { return };
        let whole = found.filter(|x| x.fract() == 0.0);
        let new =
            whole.is_some_and(|x| different.len() == MOST_DIFFERENT || different.insert((x + 0.0).to_bits()));
        if !new {
            self.different = None;
        }
    }

    fn count(&mut self, field: &str, most: usize) {
        if let Some(count) = self.distinct.get_mut(field) {
            *count += 1;
            return;
        }
        if self.examples.len() < EXAMPLES {
            self.examples.push(field.chars().take(40).collect());
        }
        if self.distinct.len() == most || field.len() > LONGEST {
            self.many = true;
            self.distinct.clear();
        } else {
            self.distinct.insert(field.to_owned(), 1);
        }
    }

    /// What this column and the same column of another file hold.
    pub(crate) fn joined(mut self, other: &Self) -> Self {
        self.missing += other.missing;
        self.points += other.points;
        self.with_point |= other.with_point;
        self.commas += other.commas;
        self.grouped += other.grouped;
        self.texts += other.texts;
        // The same numbers may identify other rows in another file.
        self.different = self.different.filter(|_| other.different.is_some());
        self.first_comma = self.first_comma.or_else(|| other.first_comma.clone());
        self.first_text = self.first_text.or_else(|| other.first_text.clone());
        self.range = match (self.range, other.range) {
            (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
            (own, others) => own.or(others),
        };
        self.many |= other.many;
        for (value, count) in &other.distinct {
            *self.distinct.entry(value.clone()).or_default() += count;
        }
        if self.many {
            self.distinct.clear();
        }
        let examples = other.examples.iter().filter(|example| !self.examples.contains(example)).cloned();
        let examples: Vec<String> = examples.collect();
        self.examples.extend(examples);
        self.examples.truncate(EXAMPLES);
        self
    }
}

/// Whether a number with a comma may have a thousands separator: one to three digits, the first not 0, then three.
fn grouped(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    text.trim_start_matches(['+', '-']).split_once(',').is_some_and(|(before, after)| {
        (1..=3).contains(&before.len())
            && after.len() == 3
            && !before.starts_with('0')
            && digits(before)
            && digits(after)
    })
}
