"""Which storage classes a volume can change to in place, and by which VolumeAttributesClass (VMOD-1..4)."""

import pytest

from member.volumes.growth import StorageClass, attributes_class, is_ours, obstacle

EBS, AZURE, GCE = "ebs.csi.aws.com", "disk.csi.azure.com", "pd.csi.storage.gke.io"


def of(provisioner: str, **parameters: str) -> StorageClass:
    return StorageClass(provisioner, {name.replace("_", "-"): value for name, value in parameters.items()})


@pytest.mark.parametrize(
    ("storage_class", "parameters"),
    [
        (
            of(EBS, type="gp3", IOPS="6000", throughput="250", encrypted="true"),
            {"type": "gp3", "iops": "6000", "throughput": "250"},
        ),
        (of(AZURE, skuname="Premium_LRS", kind="managed"), {"skuName": "Premium_LRS"}),
        (of(AZURE, storageAccountType="Premium_LRS"), {"skuName": "Premium_LRS"}),
        (
            of(AZURE, DiskIOPSReadWrite="500", DiskMBpsReadWrite="60"),
            {"DiskIOPSReadWrite": "500", "DiskMBpsReadWrite": "60"},
        ),
        (
            of(
                GCE,
                type="hyperdisk-balanced",
                provisioned_iops_on_create="3000",
                provisioned_throughput_on_create="150Mi",
            ),
            {"iops": "3000", "throughput": "150Mi"},
        ),
    ],
)
@pytest.mark.rule("VMOD-1")
def test_the_attributes_class_has_what_the_driver_changes_in_place(
    storage_class: StorageClass, parameters: dict[str, str]
) -> None:
    desired = attributes_class("fast", storage_class)
    assert desired is not None
    assert (storage_class.provisioner, parameters) == (desired["driverName"], desired["parameters"])
    assert is_ours(desired, desired)
    assert not is_ours(desired | {"parameters": {}}, desired)
    assert not is_ours(desired | {"metadata": {"name": desired["metadata"]["name"]}}, desired)


@pytest.mark.parametrize("storage_class", [of(EBS), of(EBS, encrypted="true"), of("example.com/disks", type="gp3")])
def test_there_is_none_of_a_class_without_such_parameters(storage_class: StorageClass) -> None:
    assert attributes_class("fast", storage_class) is None


def test_the_name_is_stable_and_differs_with_the_content() -> None:
    def name(class_name: str, **parameters: str) -> str:
        desired = attributes_class(class_name, of(EBS, **parameters))
        assert desired is not None
        return str(desired["metadata"]["name"])

    assert "tidb-operator-fast-9b13161696" == name("fast", type="gp3", iops="6000")
    assert name("fast", type="gp3", iops="6000") == name("fast", iops="6000", type="gp3", encrypted="true")
    assert name("fast", type="gp3") != name("fast", type="gp2")
    assert len(name("f" * 253, type="gp3")) <= 253


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (of(EBS, type="gp3", iops="3000"), of(EBS, type="gp3", iops="6000", throughput="250"), ""),
        # another type brings the defaults of that type
        (of(EBS, type="io1", iops="3000"), of(EBS, type="gp2"), ""),
        (of(EBS, encrypted="true"), of(EBS, Encrypted="true", type="io2", iops="100"), ""),
        (of(GCE, type="hyperdisk-balanced"), of(GCE, type="hyperdisk-balanced", provisioned_iops_on_create="4000"), ""),
        (of(AZURE, storageaccounttype="Premium_LRS"), of(AZURE, skuName="StandardSSD_LRS"), ""),
        (of(EBS, type="gp3"), of(GCE, type="pd-ssd"), f"its provisioner is {EBS}, not {GCE}"),
        (
            of("example.com/disks"),
            of("example.com/disks", type="a"),
            "not example.com/disks; name a VolumeAttributesClass",
        ),
        (of(GCE, type="pd-ssd"), of(GCE, type="hyperdisk-balanced"), f"{GCE} cannot change type in place"),
        (of(EBS, type="gp3"), of(EBS, type="gp3", encrypted="true"), "cannot change encrypted in place"),
        (StorageClass(EBS), StorageClass(EBS, mount_options=("noatime",)), "cannot change mountOptions in place"),
        (
            of(EBS, type="gp3", iops="6000"),
            of(EBS, type="gp3"),
            "fast does not set iops, so the volume would keep its own",
        ),
        (of(EBS, type="io2"), of(EBS), "fast does not set type"),
    ],
)
@pytest.mark.rule("VMOD-3", "VMOD-4")
def test_names_what_keeps_a_volume_from_a_class(old: StorageClass, new: StorageClass, why: str) -> None:
    assert why in obstacle(old, new, "fast")
    assert bool(why) == bool(obstacle(old, new, "fast"))
