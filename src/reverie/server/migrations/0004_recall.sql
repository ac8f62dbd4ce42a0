-- What recall searches: the words of each memory (made by a trigger, in the transaction of the change), and its vector
-- (made later by any server that has an encoder). Both are read by scope, so the index on it is the only one.

create extension if not exists vector with schema public;

create table recall_words (
    memory_id text primary key references memories on delete cascade,
    scope     text not null,
    words     tsvector not null
);
create index recall_words_by_scope on recall_words (scope);

create table recall_vectors (
    scope     text not null,
    memory_id text not null references memories on delete cascade,
    encoder   text not null,  -- vectors of different encoders cannot be compared
    passage   smallint not null,  -- a memory has some vectors: of its head, of parts of its text
    vector    public.halfvec not null,
    -- The vector is in the index: a search reads the vectors of its scopes in order and never the table.
    primary key (scope, encoder, memory_id, passage) include (vector)
);
create index recall_vectors_by_memory on recall_vectors (memory_id);

create table recall_waiting (
    memory_id text primary key references memories on delete cascade,
    since     timestamptz not null default clock_timestamp(),
    taken_until timestamptz  -- a server works on it until then
);

create function note_for_recall() returns trigger
language plpgsql security definer set search_path from current as $$
begin
    insert into recall_words (memory_id, scope, words) values (
        new.id, new.scope,
        setweight(to_tsvector('english', regexp_replace(new.path, '[^[:alnum:]]+', ' ', 'g')), 'A')
        || setweight(to_tsvector('english', coalesce(substring(new.content from '^---\n(.*?)\n---'), '')), 'A')
        || to_tsvector('english', new.content)
    ) on conflict (memory_id) do update set words = excluded.words, scope = excluded.scope;
    delete from recall_vectors where memory_id = new.id;
    insert into recall_waiting (memory_id) values (new.id)
        on conflict (memory_id) do update set since = clock_timestamp(), taken_until = null;
    return null;
end
$$;

create trigger note_for_recall after insert or update of content, path, scope on memories
    for each row execute function note_for_recall();

insert into recall_words (memory_id, scope, words)
    select id, scope,
           setweight(to_tsvector('english', regexp_replace(path, '[^[:alnum:]]+', ' ', 'g')), 'A')
           || to_tsvector('english', content)
    from memories;
insert into recall_waiting (memory_id) select id from memories;

alter table recall_words   enable row level security;
alter table recall_vectors enable row level security;
alter table recall_waiting enable row level security;
create policy own on recall_words to reverie_app using (scope = any ((select my_scopes())::text[]));
create policy own on recall_vectors to reverie_app using (scope = any ((select my_scopes())::text[]));
grant select on recall_words, recall_vectors to reverie_app;
