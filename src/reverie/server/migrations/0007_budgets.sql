-- What dreams of stores without a team may cost: those of a person, and those of the organisation (its own stores, and
-- those of projects that no team pays for). Dollars per month; null: no limit.

alter table people        add column dream_budget numeric(12, 4) default 10;
alter table organisations add column dream_budget numeric(12, 4) default 100;

create index dreams_by_organisation on dreams (organisation_id, ended_at) where team_id is null;
