//! Users and groups by name and by number.
//!
//! Read from /etc/passwd and /etc/group, because the static binary has no other source. Accounts of a directory service are
//! known only by number.

use std::collections::HashMap;
use std::fs;

use sweetspot_protocol::record::Owner;

/// The users and groups of a host.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Names,
    groups: Names,
}

#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<String, u32>,
    names: HashMap<u32, String>,
}

impl Accounts {
    /// The accounts of this host; empty if its files cannot be read.
    pub fn of_this_host() -> Accounts {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Accounts::from_text(&read("/etc/passwd"), &read("/etc/group"))
    }

    fn from_text(passwd: &str, group: &str) -> Accounts {
        Accounts { users: Names::from_text(passwd), groups: Names::from_text(group) }
    }

    /// The owner with these IDs, and this host's names for them.
    pub fn owner(&self, user: u32, group: u32) -> Owner {
        let name =
            |names: &Names, number| names.names.get(&number).map(|name| name.as_str().into());
        Owner {
            user,
            group,
            user_name: name(&self.users, user).unwrap_or_default(),
            group_name: name(&self.groups, group).unwrap_or_default(),
        }
    }

    /// This host's user and group IDs for an owner at the other end: by name if this host has the name, else by number.
    pub fn numbers(&self, owner: &Owner) -> (u32, u32) {
        let number =
            |names: &Names, name: &str, number| *names.numbers.get(name).unwrap_or(&number);
        (
            number(&self.users, owner.user_name.raw(), owner.user),
            number(&self.groups, owner.group_name.raw(), owner.group),
        )
    }
}

impl Names {
    /// Parses lines in which the first field is the name and the third is the number (passwd(5), group(5)). The first line
    /// for a name or number counts.
    fn from_text(text: &str) -> Names {
        let mut all = Names::default();
        for line in text.lines() {
            let mut fields = line.split(':');
            let (name, number) = (fields.next(), fields.nth(1));
            let Some((name, number)) = name.zip(number.and_then(|text| text.parse().ok())) else {
                continue;
            };
            if !name.is_empty() {
                all.numbers.entry(name.to_owned()).or_insert(number);
                all.names.entry(number).or_insert_with(|| name.to_owned());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_map_by_name_or_by_number_for_unknown_names() {
        let accounts =
            Accounts::from_text("root:x:0:0::/:\nann:x:1000:50::/home/ann:\n", "staff:x:50:\n");
        let here = Accounts::from_text(
            "# a remark\nann:x:1007:1007::/:\n:x:9:\nbad\n",
            "staff:*:61:ann\n",
        );
        let owner = |user, group| accounts.owner(user, group);
        assert_eq!(here.numbers(&owner(1000, 50)), (1007, 61));
        assert_eq!(here.numbers(&owner(0, 4)), (0, 4), "unknown here, or at both ends");
        assert_eq!(owner(9, 9).user_name.raw(), "");
    }
}
