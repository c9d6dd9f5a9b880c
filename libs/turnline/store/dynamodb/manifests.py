"""The tables as a CloudFormation template.  Pure.

`AWS::DynamoDB::Table`; property names checked on 2026-11-30.
"""

from collections.abc import Mapping, Sequence

import yaml

from turnline.store.dynamodb.provision import Wanted
from turnline.store.dynamodb.schema import BACKUPS, GUARDED, LIFETIME, table_request

_TITLES: Mapping[str, str] = {
    "execution.response_store.dynamodb.table_name": "Responses",
    "session.dynamodb.table_name": "Sessions",
}


def manifests_of(tables: Sequence[Wanted]) -> str:
    """Write all tables as one YAML text."""
    resources = {
        f"{_TITLES.get(wanted.setting, 'Connections')}Table": _resource(wanted) for wanted in tables
    }
    return yaml.safe_dump(
        {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}, sort_keys=False
    )


def _resource(wanted: Wanted) -> dict[str, object]:
    return {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            **table_request(wanted.name, wanted.schema),
            "TimeToLiveSpecification": dict(LIFETIME),
            "PointInTimeRecoverySpecification": dict(BACKUPS),
            # Here the one name that differs from the API's.
            "SSESpecification": {"SSEEnabled": GUARDED["SSESpecification"]["Enabled"]},
            "DeletionProtectionEnabled": GUARDED["DeletionProtectionEnabled"],
        },
    }
