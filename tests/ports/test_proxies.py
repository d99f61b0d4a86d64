import pytest

from ports.proxies import proxy_for

PROXY = {"HTTP_PROXY": "http://plain:3128", "HTTPS_PROXY": "http://secure:3128"}


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("http://pd.ns:2379", {}, None),
        ("http://pd.ns:2379", PROXY, "http://plain:3128"),
        ("https://10.0.0.1:6443", PROXY, "http://secure:3128"),
        ("https://a", {"ALL_PROXY": "all:1080"}, "http://all:1080"),
        ("http://a", {"http_proxy": "http://lower", "HTTP_PROXY": "http://upper"}, "http://lower"),
        ("http://a", {"http_proxy": "", "HTTP_PROXY": "http://upper"}, None),
        ("http://a", {"HTTP_PROXY": "http://upper", "REQUEST_METHOD": "GET"}, None),
    ],
)
def test_the_environment_names_the_proxy_by_scheme(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy == proxy_for(url, environ)


@pytest.mark.parametrize(
    "url",
    ["http://localhost:80", "https://127.0.0.1:6443", "http://127.8.9.1", "http://[::1]:80", "http://x.localhost"],
)
def test_loopback_is_always_direct(url: str) -> None:
    assert proxy_for(url, PROXY) is None


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("*", "http://anything", True),
        ("example.com", "http://example.com", True),
        ("example.com", "http://sub.Example.com.", True),
        (".example.com", "http://sub.example.com", True),
        ("example.com", "http://badexample.com", False),
        ("other, example.com:8080", "http://example.com:8080", True),
        ("example.com:8080", "http://example.com:9090", False),
        ("example.com:443", "https://example.com", True),
        ("10.0.0.0/8", "https://10.96.0.1:443", True),
        ("10.0.0.0/8", "https://11.96.0.1:443", False),
        ("10.0.0.1", "http://10.0.0.1", True),
        ("fd00::/8", "http://[fd00::1]:2379", True),
        ("10.0.0.0/8", "http://pd.10.0.0.0", False),
        ("", "http://a", False),
    ],
)
def test_NO_PROXY_names_hosts_addresses_and_networks(no_proxy: str, url: str, direct: bool) -> None:
    assert direct == (proxy_for(url, PROXY | {"NO_PROXY": no_proxy}) is None)
    assert direct == (proxy_for(url, PROXY | {"no_proxy": no_proxy, "NO_PROXY": ""}) is None)
