-- Uploaded sessions, dreams and their jobs. The schema `procrastinate` is there already (see `job_schema.py`).

create table sessions (
    id              text primary key,
    organisation_id text not null references organisations on delete cascade,
    scope           text not null,
    uploaded_by     text references people on delete set null,
    name            text not null default '',
    format          text not null,
    transcript      bytea not null,  -- gzip
    size            bigint not null,  -- bytes of the transcript itself
    records         integer not null,
    sha256          text not null,
    created_at      timestamptz not null default now()
);
create index sessions_by_time on sessions (scope, created_at desc, id desc);

-- One row per dream, and per extraction from a session: both change a store in the background.
create table dreams (
    id              text primary key,
    organisation_id text not null references organisations on delete cascade,
    scope           text not null,  -- of its store
    kind            text not null default 'dream' check (kind in ('dream', 'extraction')),
    store_id        text not null,  -- no reference: a dream outlives its store
    session_ids     text[] not null default '{}',
    instructions    text,
    model           text not null,
    output          text not null default 'create_new' check (output in ('create_new', 'update_existing')),
    is_automatic    boolean not null default false,
    waits           boolean not null default false,  -- its result waits for a decision
    review          text check (review in ('pending', 'landed', 'discarded', 'undone')),
    status          text not null default 'pending'
                    check (status in ('pending', 'running', 'completed', 'failed', 'canceled')),
    output_store_id text,
    changes         jsonb not null default '[]',  -- path, operation, versions and hashes; never contents
    summary         text not null default '',
    error_type      text,
    error_message   text,
    input_tokens                bigint not null default 0,
    output_tokens               bigint not null default 0,
    cache_read_input_tokens     bigint not null default 0,
    cache_creation_input_tokens bigint not null default 0,
    cost            numeric(14, 6) not null default 0,  -- dollars
    team_id         text references teams on delete set null,  -- whose budget pays
    created_by      text references people on delete set null,
    token_id        text,
    counter         bigint,  -- the number of the last change of the store that it has read
    job_id          bigint,
    attempt         integer not null default 0,  -- the fencing number: whoever takes the dream raises it
    failures        integer not null default 0,
    lease_until     timestamptz,
    worker          text,
    created_at      timestamptz not null default now(),
    started_at      timestamptz,
    ended_at        timestamptz,
    archived_at     timestamptz
);
create index dreams_by_time on dreams (scope, created_at desc, id desc);
create index dreams_by_store on dreams (store_id, created_at desc);
create index dreams_by_team on dreams (team_id, started_at) where team_id is not null;
create index dreams_open on dreams (status) where status in ('pending', 'running');
create unique index dreams_one_running on dreams (store_id) where status = 'running';
create unique index dreams_one_update on dreams (store_id)
    where kind = 'dream' and output = 'update_existing' and status in ('pending', 'running');
create unique index dreams_one_automatic on dreams (store_id) where is_automatic and status = 'pending';

-- How a store, or every store of an organisation, dreams by itself. Without a row: it does not.
create table dream_settings (
    id              text primary key,  -- of the store or the organisation
    organisation_id text not null references organisations on delete cascade,
    scope           text not null,
    is_automatic    boolean not null default false,
    review          boolean not null default false,  -- also for dreams by hand that update the store
    model           text not null default 'embedded',
    quiet_s         integer not null default 900 check (quiet_s between 0 and 86400),
    least_changes   integer not null default 5 check (least_changes between 1 and 10000),
    updated_at      timestamptz not null default now()
);

-- Jobs: a dream and its job come together, in one transaction, and requests cannot reach the queue in another way.
create function queue_dream(dream text, store text, debounce text, at timestamptz) returns bigint
language sql security definer set search_path = reverie, procrastinate, pg_temp as $$
    select (procrastinate_defer_jobs_v1(array[
        row('dreams', 'reverie.dream', 0, 'store:' || store, debounce, jsonb_build_object('dream', dream), at)
    ]::procrastinate_job_to_defer_v1[]))[1]
$$;
revoke all on function queue_dream(text, text, text, timestamptz) from public;

create function new_dream() returns trigger
language plpgsql security definer set search_path = reverie, procrastinate, pg_temp as $$
begin
    new.team_id := case
        when new.scope like 'team:%' then substr(new.scope, 6)
        when new.scope like 'project:%' then (select team_id from projects where id = substr(new.scope, 9))
    end;
    new.job_id := queue_dream(
        new.id, new.store_id, case when new.is_automatic then 'automatic:' || new.store_id end, null
    );
    return new;
end
$$;
revoke all on function new_dream() from public;
create trigger new_dream before insert on dreams for each row execute function new_dream();

alter table sessions       enable row level security;
alter table dreams         enable row level security;
alter table dream_settings enable row level security;
create policy own on sessions to reverie_app
    using (scope = any ((select my_scopes())::text[]) and organisation_id = (select my_organisation()));
create policy own on dreams to reverie_app
    using (scope = any ((select my_scopes())::text[]) and organisation_id = (select my_organisation()));
create policy own on dream_settings to reverie_app
    using (scope = any ((select my_scopes())::text[]) and organisation_id = (select my_organisation()));

grant select, insert, delete on sessions to reverie_app;
grant select, insert, update on dreams to reverie_app;
grant select, insert, update, delete on dream_settings to reverie_app;
