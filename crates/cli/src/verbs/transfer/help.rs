//! Paragraphs of the help of several verbs, for `concat!`.

macro_rules! progress_help {
    () => {
        "\
Progress lines end with the state of the window: measuring the path, holding the
window at the capacity, trying another window or rate, or open (left to
congestion control). sobas (socket buffer auto-sizing) limits the window only
where it has measured that this costs no rate."
    };
}

macro_rules! ticket_help {
    () => {
        "\
Connections are encrypted and authenticated (TLS 1.3). Anyone who has a
ticket can use it, so keep it secret; only a service (serve --clients) asks for
a key as well."
    };
}

pub(crate) use {progress_help, ticket_help};
