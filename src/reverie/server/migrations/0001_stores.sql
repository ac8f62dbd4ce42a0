-- People, stores, memories and their versions. Every row that belongs to a store has its scope, and the policies at the
-- end compare it with the scopes of the request (`reverie.scopes`, set for one transaction).

create table organisations (
    id          text primary key,
    name        text not null unique,
    created_at  timestamptz not null default now()
);

create table people (
    id              text primary key,
    organisation_id text not null references organisations on delete cascade,
    name            text not null,
    kind            text not null default 'person' check (kind in ('person', 'service')),
    is_admin        boolean not null default false,
    created_at      timestamptz not null default now(),
    disabled_at     timestamptz,
    unique (organisation_id, name)
);

create table teams (
    id              text primary key,
    organisation_id text not null references organisations on delete cascade,
    name            text not null,
    dream_budget    numeric(12, 4),  -- dollars per month; null: no limit
    created_at      timestamptz not null default now(),
    unique (organisation_id, name)
);

create table projects (
    id              text primary key,
    organisation_id text not null references organisations on delete cascade,
    name            text not null,  -- what clients name it by: the address of its repository, or a name of its own
    team_id         text references teams on delete set null,
    created_at      timestamptz not null default now(),
    unique (organisation_id, name)
);

create table team_members (
    team_id   text not null references teams on delete cascade,
    person_id text not null references people on delete cascade,
    primary key (team_id, person_id)
);

create table project_members (
    project_id text not null references projects on delete cascade,
    person_id  text not null references people on delete cascade,
    primary key (project_id, person_id)
);

create table tokens (
    id           text primary key,
    person_id    text not null references people on delete cascade,
    name         text not null default '',
    hash         bytea not null unique,
    may_write    boolean not null default true,
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);

create table stores (
    id              text primary key,
    organisation_id text not null references organisations on delete cascade,
    scope           text not null,  -- user:ID, project:ID, team:ID or organisation:ID
    purpose         text not null default '',  -- what a client keeps in it, such as the project of a private store
    name            text not null,
    description     text not null default '',
    metadata        jsonb not null default '{}',
    counter         bigint not null default 0,  -- the number of the last change
    created_by      text references people on delete set null,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    archived_at     timestamptz
);
create index stores_by_time on stores (organisation_id, created_at desc, id desc);
create index stores_by_scope on stores (scope, purpose);

create table memories (
    id          text primary key,
    store_id    text not null references stores on delete cascade,
    scope       text not null,
    path        text collate "C" not null,
    content     text not null,
    sha256      text not null,
    size        integer not null,
    version_id  text not null,
    number      bigint not null,  -- of the change that it shows
    trust       text not null default 'unmarked' check (trust in ('confirmed', 'inferred', 'unmarked')),
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    unique (store_id, path)
);
create index memories_by_number on memories (store_id, number);

create table versions (
    id           text primary key,
    store_id     text not null references stores on delete cascade,
    scope        text not null,
    memory_id    text not null,  -- no reference: versions outlive their memory
    number       bigint not null,
    operation    text not null check (operation in ('created', 'modified', 'deleted')),
    path         text collate "C",
    content      text,
    sha256       text,
    size         integer,
    trust        text,
    actor_type   text not null check (actor_type in ('user_actor', 'service_account_actor', 'session_actor', 'api_actor')),
    actor_id     text not null,
    token_id     text,
    reason       text not null default '',
    session_id   text,
    message_id   text,
    created_at   timestamptz not null default now(),
    redacted_at  timestamptz,
    redacted_by_type text,
    redacted_by_id   text,
    unique (store_id, number)
);
create index versions_by_memory on versions (memory_id, number desc);
create index versions_by_time on versions (store_id, created_at desc, number desc);

create table audit (
    id              bigint generated always as identity primary key,
    at              timestamptz not null default now(),
    organisation_id text,
    person_id       text,
    token_id        text,
    action          text not null,
    object          text not null default '',
    outcome         text not null default 'done'
);
create index audit_by_time on audit (organisation_id, at desc);

-- Who a token stands for. It runs as the owner, because `tokens` and `people` are hidden from requests.
create type principal as (
    token_id text, may_write boolean, person_id text, kind text, is_admin boolean, organisation_id text, scopes text[]
);

create function principal_of(given bytea) returns setof principal
language sql stable security definer set search_path from current as $$
    select t.id, t.may_write, p.id, p.kind, p.is_admin, p.organisation_id,
           array['user:' || p.id, 'organisation:' || p.organisation_id]
           || array(select 'team:' || m.team_id from team_members m where m.person_id = p.id)
           || array(select 'project:' || m.project_id from project_members m where m.person_id = p.id)
    from tokens t join people p on p.id = t.person_id
    where t.hash = given and t.revoked_at is null and p.disabled_at is null
      and (t.expires_at is null or t.expires_at > now())
$$;

create function my_scopes() returns text[]
language sql stable as $$
    select string_to_array(nullif(current_setting('reverie.scopes', true), ''), ',')
$$;

create function my_organisation() returns text
language sql stable as $$
    select nullif(current_setting('reverie.organisation', true), '')
$$;

alter table organisations   enable row level security;
alter table people          enable row level security;
alter table teams           enable row level security;
alter table projects        enable row level security;
alter table team_members    enable row level security;
alter table project_members enable row level security;
alter table tokens          enable row level security;
alter table audit           enable row level security;
alter table stores          enable row level security;
alter table memories        enable row level security;
alter table versions        enable row level security;

create policy own on stores to reverie_app
    using (scope = any ((select my_scopes())::text[]) and organisation_id = (select my_organisation()));
create policy own on memories to reverie_app using (scope = any ((select my_scopes())::text[]));
create policy own on versions to reverie_app using (scope = any ((select my_scopes())::text[]));
create policy adds on audit for insert to reverie_app with check (organisation_id = (select my_organisation()));

grant select, insert, update, delete on stores, memories to reverie_app;
grant select, insert, update on versions to reverie_app;
grant insert on audit to reverie_app;
grant execute on function principal_of(bytea), my_scopes(), my_organisation() to reverie_app;
