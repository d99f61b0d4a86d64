"""Values of the environment that AWS KMS has encrypted, for `spec.useKMS` (KMS-5, KMS-6).

v1.6 has them decrypted by a program before the command, and only where no region is named. botocore, which asks KMS,
is the extra `kms` of the image.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import TypeAlias

from backup_manager.outcomes import Undecrypted

_ENCRYPTED = "KMS_ENCRYPTED_"
_WITHOUT_LIBRARY = "this image lacks botocore, which asks KMS: install it there (the extra `kms`), or use v1.6's image"
_ATTEMPTS, _CONNECT, _READ = 3, 10.0, 30.0

Decrypt: TypeAlias = Callable[[bytes], bytes]
"""Decrypts a ciphertext. Raises Undecrypted with the code of the error."""


def decrypted(
    environ: Mapping[str, str], service: Callable[[Mapping[str, str]], Decrypt] | None = None
) -> dict[str, str]:
    """The environment with `X` for each `KMS_ENCRYPTED_X`, unless it has X already; `service` is KMS by default.

    Raises Undecrypted with the name of the variable, and never its value.
    """
    wanted = [name for name in sorted(environ) if name.startswith(_ENCRYPTED)]
    missing = [name for name in wanted if name.removeprefix(_ENCRYPTED) not in environ]
    if not missing:
        return dict(environ)
    decrypt = (service or aws)(environ)
    return dict(environ) | {name.removeprefix(_ENCRYPTED): _plain(name, environ[name], decrypt) for name in missing}


def _plain(name: str, value: str, decrypt: Decrypt) -> str:
    try:
        return decrypt(base64.b64decode("".join(value.split()), validate=True)).decode()
    except binascii.Error:
        raise Undecrypted(f"{name} is not base64, as KMS's ciphertexts are written") from None
    except UnicodeDecodeError:
        raise Undecrypted(f"{name}: what KMS has decrypted is not UTF-8") from None
    except Undecrypted as error:
        raise Undecrypted(f"{name}: {error}") from None


def aws(environ: Mapping[str, str]) -> Decrypt:
    """KMS of AWS, with the credentials that its libraries find. The key is named in the ciphertext.

    The region is AWS_DEFAULT_REGION, AWS_REGION, or the instance's. Raises Undecrypted.
    """
    try:
        from botocore.config import Config  # noqa: PLC0415  (optional: the extra `kms`)
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
        from botocore.session import Session  # noqa: PLC0415
        from botocore.utils import InstanceMetadataRegionFetcher  # noqa: PLC0415
    except ImportError:
        raise Undecrypted(_WITHOUT_LIBRARY) from None
    region = environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION")
    region = region or InstanceMetadataRegionFetcher().retrieve_region()
    if not region:
        raise Undecrypted("no region of KMS: set spec.s3.region, or AWS_REGION in spec.env")
    limits = Config(connect_timeout=_CONNECT, read_timeout=_READ, retries={"total_max_attempts": _ATTEMPTS})
    client = Session().create_client("kms", region_name=region, config=limits)

    def decrypt(ciphertext: bytes) -> bytes:
        try:
            plain: bytes = client.decrypt(CiphertextBlob=ciphertext)["Plaintext"]
        except ClientError as error:
            raise Undecrypted(f"KMS in {region} answers {error.response['Error']['Code']}") from None
        except BotoCoreError as error:
            raise Undecrypted(f"KMS in {region} could not be asked: {error}") from None
        return plain

    return decrypt
