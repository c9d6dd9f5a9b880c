"""An application with a handler of its own, which runs inline, outside the pipeline."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from turnline.pipeline import RESTAPI, RESTRequestHandler


class Greeting(RESTRequestHandler):
    def routes(self) -> Sequence[BaseRoute]:
        return [Route("/greet", self.greet)]

    async def greet(self, _: Request) -> Response:
        return JSONResponse({"hello": "inline"})


if __name__ == "__main__":
    RESTAPI.run([Greeting()])
