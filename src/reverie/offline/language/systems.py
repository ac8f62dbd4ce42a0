"""Names of things outside the code that people point at: trackers, chats, wikis, dashboards, drives. Data only.

Well-known products, so that a pointer is recognised; anything else is recognised by its address, its channel or the
kind of place that is named with it.
"""

from __future__ import annotations

import re
from typing import Final

from reverie.text.folding import word_set

_NAMES: Final = """
    jira linear youtrack bugzilla redmine trello asana clickup shortcut basecamp plane height backlog
    mantis phabricator taiga wrike smartsheet airtable notion confluence coda quip slab outline
    bookstack dokuwiki mediawiki sharepoint onedrive dropbox nextcloud owncloud alfresco overleaf zotero
    zenodo dataverse figshare osf dryad openneuro kaggle slack mattermost discord zulip rocketchat teams
    telegram whatsapp signal matrix irc discourse viber kakaotalk grafana datadog kibana splunk
    prometheus sentry rollbar bugsnag honeycomb newrelic dynatrace pagerduty opsgenie victorops
    statuspage incident.io rootly firehydrant looker tableau metabase superset powerbi mode redash
    amplitude mixpanel posthog segment zendesk freshdesk intercom hubspot salesforce servicenow
    pipedrive gorgias helpscout figma miro zeplin sketch invision canva abstract artifactory nexus
    jenkins teamcity buildkite circleci argocd rundeck backstage launchdarkly vault 1password lastpass
    bitwarden keepass epic cerner redcap benchling labarchives labguru eln lims feishu lark dingtalk
    yuque tapd zentao coding.net 飞书 钉钉 企业微信 语雀 禅道 石墨 腾讯文档 金山文档 kintone
    esa.io qiita docbase backlog サイボウズ ガルーン datev nas intranet
"""
_PHRASES: Final = (
    r"google (?:drive|docs?|forms?|sheets?|calendar|chat|groups)|gdrive|azure devops|power ?bi|ms teams|microsoft teams"
    r"|new relic|rocket\.chat|shared (?:drive|folder|mailbox)|network (?:drive|share)|github (?:issues|projects?"
    r"|discussions?|wiki)|gitlab (?:issues|boards?|wiki)|gh issues|monday\.com|stack overflow for teams|one ?note"
    r"|s3 bucket|the (?:company|team|internal) wiki|gemeinsame[sn]? laufwerk|netzlaufwerk|unidad compartida|共享盘|网盘"
    r"|共有(?:ドライブ|フォルダ)"
)
SYSTEM: Final = re.compile(
    "|".join(
        [
            *(
                rf"(?<![A-Za-z0-9_.-]){re.escape(name)}(?![A-Za-z0-9_-])" if name.isascii() else re.escape(name)
                for name in sorted(set(_NAMES.split()), key=lambda name: (-len(name), name))
            ),
            rf"\b(?:{_PHRASES})",
        ]
    ),
    re.IGNORECASE,
)
"""A product by its name."""
ORDINARY: Final = word_set(
    "linear plane height outline signal matrix teams mode segment abstract sketch shortcut coda vault epic slab backlog"
)
"""Names that are also words: they count only with a capital."""
ADDRESS: Final = re.compile(
    r"https?://[^\s)>\]\"'`，。]+|(?<![\w@/.])(?:[\w-]+\.)+(?:com|org|net|io|app|dev|ai|co|cloud|internal|local|corp"
    r"|example|edu|gov|de|es|cn|jp|eu|uk|fr|ch)(?:/[\w./#?=&%~-]*)?(?![\w.])|(?<![\w#])#[a-z][\w-]{2,}\b"
    r"|[\w.+-]+@[\w-]+\.[\w.]+|\bdoi:\s?\S+",
)
"""A link, a host, a channel, an identifier of a data set."""
CODE_HOST: Final = re.compile(
    r"(?:github|gitlab|bitbucket)\.[\w.]+/\S+|localhost|127\.0\.0\.1|(?:pull|commit|blob)/", re.I
)
"""Addresses of code: what is there is found in git."""
IN_REPOSITORY: Final = re.compile(
    r"(?<![\w/:.])(?:\.{0,2}/)?(?:[\w.@-]+/)+[\w.@-]*|(?<![\w/@])[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|c|h|cpp|hpp|java|kt"
    r"|swift|rb|php|cs|sql|ya?ml|json|toml|sh|md|css|html|lock)\b"
)
"""A path or a file of code."""
