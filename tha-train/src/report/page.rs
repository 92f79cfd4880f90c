//! The page around the plots: one HTML file without scripts and without anything from elsewhere.

use super::palette::dark_rules;
use crate::output::MARK;

/// Text that is safe between tags.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "
:root{color-scheme:light dark;--page:#f6f8fa;--card:#fff;--ink:#1f2933;--muted:#687582;--line:#e3e8ed;--good:#158f4f;--bad:#d12f2f}
@media (prefers-color-scheme:dark){:root{--page:#0c1116;--card:#141b22;--ink:#e6eaee;--muted:#9aa7b4;--line:#2b3641;--good:#4cd58a;--bad:#ff7b76}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
main{max-width:1120px;margin:0 auto;padding:36px 20px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:20px;margin:44px 0 4px;letter-spacing:-.005em}
h3{font-size:15px;margin:0 0 8px;font-weight:600}
p{margin:0 0 12px;max-width:100ch}
.muted,figcaption{color:var(--muted);font-size:14px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:22px 0 8px}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:12px 16px}
.tile b{display:block;font-size:24px;font-weight:600;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.tile span{color:var(--muted);font-size:13px}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:14px;margin-top:14px}
.card{padding:16px 18px;margin-top:14px;min-width:0}
.grid .card{margin-top:0}
.grid .card:last-child:nth-child(odd){grid-column:1/-1}
figure{margin:0}
figcaption{margin-top:6px}
svg{display:block;width:100%;max-width:640px;height:auto;margin:0 auto}
svg.natural{width:auto;max-width:100%;margin:0 auto}
svg text{font-family:inherit}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th{color:var(--muted);font-weight:500;text-align:right;padding:6px 10px;border-bottom:1px solid var(--line);white-space:nowrap}
td{text-align:right;padding:6px 10px;border-bottom:1px solid var(--line);white-space:nowrap}
table.many{font-size:13px}table.many th,table.many td{padding:5px 6px}
tr:last-child td{border-bottom:0}
th:first-child,td:first-child{text-align:left;padding-left:0;white-space:normal}
.good{color:var(--good);font-weight:600}
.bad{color:var(--bad);font-weight:600}
code{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
footer{margin-top:48px;color:var(--muted);font-size:13px}
@media print{body{background:#fff}.card,.tile{break-inside:avoid}}
";

/// A page in the making.
pub(crate) struct Page {
    body: String,
    title: String,
}

impl Page {
    pub(crate) fn new(title: &str, subtitle: &str) -> Self {
        let body = format!("<h1>{}</h1><p class=\"muted\">{}</p>", escape(title), escape(subtitle));
        Self { body, title: escape(title) }
    }

    /// Large numbers with a word below each.
    pub(crate) fn tiles(&mut self, tiles: &[(String, &str)]) {
        let tile = |(value, name): &(String, &str)| {
            format!("<div class=\"tile\"><b>{}</b><span>{name}</span></div>", escape(value))
        };
        self.body += &format!("<div class=\"tiles\">{}</div>", tiles.iter().map(tile).collect::<String>());
    }

    /// A heading and what is to be seen below it.
    pub(crate) fn section(&mut self, title: &str, words: &str) {
        self.body += &format!("<h2>{}</h2><p class=\"muted\">{words}</p>", escape(title));
    }

    /// Cards beside each other where the window is wide enough.
    pub(crate) fn cards(&mut self, cards: &[String]) {
        match cards {
            [] => {}
            [card] => self.body += card,
            _ => self.body += &format!("<div class=\"grid\">{}</div>", cards.concat()),
        }
    }

    /// The whole file.
    pub(crate) fn finish(self, foot: &str) -> String {
        format!(
            "<!doctype html><!-- {MARK}train` --><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{}</title>\
             <style>{STYLE}{}</style></head><body><main>{}<footer>{}</footer></main></body></html>\n",
            self.title,
            dark_rules(),
            self.body,
            escape(foot)
        )
    }
}

/// A plot with a title and a caption (HTML).
pub(crate) fn figure(title: &str, svg: &str, caption: &str) -> String {
    let caption = described(caption);
    format!("<div class=\"card\"><figure><h3>{}</h3>{svg}{caption}</figure></div>", escape(title))
}

fn described(caption: &str) -> String {
    if caption.is_empty() { String::new() } else { format!("<figcaption>{caption}</figcaption>") }
}

/// A table with a title; cells are HTML.
pub(crate) fn table(title: &str, head: &[&str], rows: &[Vec<String>], caption: &str) -> String {
    let head: String = head.iter().map(|cell| format!("<th>{cell}</th>")).collect();
    let row = |row: &Vec<String>| {
        let cells: String = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr>{cells}</tr>")
    };
    let many = if rows.first().is_some_and(|row| row.len() > 8) { " class=\"many\"" } else { "" };
    let rows: String = rows.iter().map(row).collect();
    let caption = described(caption);
    format!(
        "<div class=\"card\"><h3>{}</h3><div class=\"scroll\"><table{many}><tr>{head}</tr>{rows}</table></div>{caption}</div>",
        escape(title)
    )
}
