"""Texts that mean something in a shell, in TOML, YAML, SQL or a URL, and one that means nothing."""

from tests.security.shell_texts import CANARY

HARMLESS = "q7x7q"
_OF_SHELLS = (
    *(f"$({CANARY})", f"`{CANARY}`", f"';{CANARY};'", f'";{CANARY};"', f";{CANARY}", f"\n{CANARY}\n", f"&& {CANARY}"),
    *(f"|{CANARY}", f"${{x:-$({CANARY})}}", f"\\$({CANARY})", f"$$({CANARY})", f"<({CANARY})", f"$({CANARY}", "'", '"'),
    *("\\", "`", "${", "*", "~", "!x", "# x", "$(POD_NAME)", "$(NAMESPACE)", "$$x", "$POD_NAME", "$1", "\\n"),
)
_OF_CONFIGURATION = (
    *('"""\n[x]\ny = 1\n', "'''", "\\u0041", "]", "= 1", "\n[[a]]\n", "\t", "\x7f", ": - &a *a !b", "\n- x: 1\n"),
    *("%YAML 1.1\n---\n", "{{ x }}", "\u2028", "\x85", "?", "- ", "| ", "> ", "*.x", "<<: x", "{", ","),
)
_OF_SQL = ("' OR 1=1 -- ", "\\'; DROP TABLE t; #", "%s %% %(a)s", "`; --", "\u02bc")
_OF_URLS = ("?a=b&c=d#e", "%2e%2e%2f", "@evil.example:1/", "#", "&acl=public", "+", "\r\nX: y", ";a=b", "%")
TEXTS = tuple(f"q7{meta}7q" for meta in (*_OF_SHELLS, *_OF_CONFIGURATION, *_OF_SQL, *_OF_URLS))
OPTIONS = ("-q7x7q", "--q7x7q", "--q7=x7q")
"""Texts that would be options if they were separate words."""
