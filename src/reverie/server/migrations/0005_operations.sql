-- Who changed accounts at the command line, and when a token was used last.

alter table audit add column actor text not null default '';  -- where no token acts: the user of the machine
create index audit_by_action on audit (action, at desc);

-- Runs as the owner, because `tokens` is hidden from requests. Once per hour and token, and never in anybody's way.
create function note_token_use(given text) returns void
language sql security definer set search_path from current as $$
    update tokens set last_used_at = now() where id in (
        select id from tokens where id = given and (last_used_at is null or last_used_at < now() - interval '1 hour')
        for update skip locked
    )
$$;
grant execute on function note_token_use(text) to reverie_app;
