"""`reverie.quick.dataclass` behaves as the one of the standard library, whichever way a class is written."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar

import pytest

from reverie import quick

WAYS = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "order": True},
    {"slots": True, "kw_only": True},
    {"slots": True, "eq": False},
]


def make(dataclass: Any, way: dict[str, bool]) -> Any:
    """The same class by either decorator, with every kind of field."""

    @dataclass(**way)
    class Point:
        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False, repr=False)
        _: KW_ONLY
        name: str = "here"
        made: int = field(default=7, init=False)
        sum: int = field(init=False, hash=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.x + self.y)

    return Point


def tell(call: Any) -> Any:
    """What a call returns, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_it_is_the_dataclass_of_the_library(way: dict[str, bool]) -> None:
    told = list[list[Any]]()
    for dataclass in (quick.dataclass, dataclasses.dataclass):
        point = make(dataclass, way)
        one, same, other = point(x=1), point(x=1, tags=["a"]), point(x=1, y=3, name="there")

        def matched(given: Any, point: Any = point) -> Any:
            match given:
                case point(x=x, name=name):
                    return x, name

        told.append(
            [
                str(inspect.signature(point)),
                [(f.name, f.type, f.init, f.kw_only) for f in dataclasses.fields(point)],
                point.__match_args__,
                getattr(point, "__slots__", None),
                repr(one),
                repr(other),
                (one == same, one == other, one == 1, one != same),
                tell(lambda one=one, same=same: hash(one) == hash(same)) if way.get("eq", True) else None,
                matched(other),
                dataclasses.asdict(other),
                repr(dataclasses.replace(one, y=5)),
                repr(copy.deepcopy(same)),
                copy.deepcopy(same).tags,
                tell(lambda one=one: setattr(one, "x", 3)),
                tell(lambda one=one: delattr(one, "y")),
                tell(lambda point=point: point()),
                tell(lambda point=point: point(1, 2, [], "here")),
                tell(lambda point=point: point(x=1, z=2)),
                tell(lambda one=one, other=other: one < other),
                repr(point.__dataclass_params__),
            ]
        )
    for ours, theirs in zip(*told, strict=True):
        assert ours == theirs


@quick.dataclass(frozen=True, slots=True)
class Leaf:
    """A class that can be pickled: it has a place in a module."""

    text: str
    under: Leaf | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf) and other.text == self.text


@dataclasses.dataclass(frozen=True, slots=True)
class Branch(Leaf):
    """The library's own, made from one of ours."""

    length: int = 1


@quick.dataclass(frozen=True, slots=True)
class Twig(Leaf):
    """One of ours, made from one of ours."""

    length: int = 1


class Plain(Leaf):
    """A class of its own on top, with attributes of its own."""


def test_pickles_subclasses_and_own_methods() -> None:
    leaf = Leaf("a", Leaf("b"))
    assert pickle.loads(pickle.dumps(leaf)) == leaf and repr(leaf) == "Leaf(text='a', under=Leaf(text='b', under=None))"
    assert hash(Leaf("a", None)) == hash(Leaf("a", None)), "with an `__eq__` of its own, it has the hash of its fields"
    for kind in (Branch, Twig):
        assert repr(kind("c", length=2)) == f"{kind.__name__}(text='c', under=None, length=2)"
        with pytest.raises(dataclasses.FrozenInstanceError):
            kind("c").length = 3  # type: ignore[misc]
    plain: Any = Plain("d")
    plain.colour = "green"
    assert (plain.text, plain.colour) == ("d", "green")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'text'"):
        plain.text = "e"
