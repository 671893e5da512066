"""What there is none of here: access control, quotas, passwords, authentication.

A question is answered as by a broker that has none; what would set them is refused with a sentence.
"""

from __future__ import annotations

from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import NO_ERROR, AskedBroker, at_once, code

NO_AUTHORIZER = "No Authorizer is configured."


@at_once
def describe_acls(here: AskedBroker, request: WireRequest) -> Fields:
    """Say that there are no access control lists, as a broker without authorizer does."""
    return {"error_code": code("SECURITY_DISABLED"), "error_message": NO_AUTHORIZER, "resources": ()}


@at_once
def describe_client_quotas(here: AskedBroker, request: WireRequest) -> Fields:
    """Say that no client has a quota."""
    return {"error_code": NO_ERROR, "error_message": None, "entries": ()}


@at_once
def describe_user_scram_credentials(here: AskedBroker, request: WireRequest) -> Fields:
    """Say that no user has a password."""
    users = request.message["users"] or ()
    return {"error_code": NO_ERROR, "error_message": None, "results": tuple(
        {"user": user["name"], "error_code": code("RESOURCE_NOT_FOUND"), "credential_infos": (),
         "error_message": f"Attempt to describe a user credential that does not exist: {user['name']}"}
        for user in users)}


@at_once
def create_acls(here: AskedBroker, request: WireRequest) -> Fields:
    refused = {"error_code": code("SECURITY_DISABLED"), "error_message": NO_AUTHORIZER}
    return {"results": tuple(refused for _ in request.message["creations"])}


@at_once
def delete_acls(here: AskedBroker, request: WireRequest) -> Fields:
    refused = {"error_code": code("SECURITY_DISABLED"), "error_message": NO_AUTHORIZER, "matching_acls": ()}
    return {"filter_results": tuple(refused for _ in request.message["filters"])}


@at_once
def alter_client_quotas(here: AskedBroker, request: WireRequest) -> Fields:
    return {"entries": tuple(
        {"error_code": code("INVALID_REQUEST"), "error_message": "Quotas are not served here: nobody is throttled.",
         "entity": entry["entity"]} for entry in request.message["entries"])}


@at_once
def alter_user_scram_credentials(here: AskedBroker, request: WireRequest) -> Fields:
    given = request.message["upsertions"]
    names = dict.fromkeys(row["name"] for row in (*request.message["deletions"], *given))
    missing = "RESOURCE_NOT_FOUND", "Attempt to delete a user credential that does not exist"
    refused = "UNSUPPORTED_SASL_MECHANISM", "Passwords are not served here: nobody is authenticated."
    found = {name: refused if any(row["name"] == name for row in given) else missing for name in names}
    return {"results": tuple({"user": name, "error_code": code(error), "error_message": reason}
                             for name, (error, reason) in found.items())}


@at_once
def sasl_handshake(here: AskedBroker, request: WireRequest) -> Fields:
    """Refuse it, as on a listener without SASL."""
    return {"error_code": code("ILLEGAL_SASL_STATE"), "mechanisms": ()}


@at_once
def sasl_authenticate(here: AskedBroker, request: WireRequest) -> Fields:
    """Refuse it, as on a listener without SASL."""
    return {"error_code": code("ILLEGAL_SASL_STATE"), "auth_bytes": b"",
            "error_message": "SaslAuthenticate request received after successful authentication"}
