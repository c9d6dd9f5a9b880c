"""Function `ws-connection-handler-authorizer`: checks the token of `$connect` by `auth.*`."""

from turnline.aws import APIGatewayAuthorizer

handler = APIGatewayAuthorizer().handle
