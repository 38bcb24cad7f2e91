"""Linear maps by oneDNN: the same map, with gradients, in bfloat16 and without, and through copies; and in int8."""

from __future__ import annotations

import copy

import pytest
import torch

from ssrem.encoders.layers import OneDnnLinear, use_int8, use_onednn


def pair(bias: bool = True) -> tuple[torch.nn.Linear, torch.nn.Sequential]:
    """A linear map of torch, and a model with the same one by oneDNN."""
    torch.manual_seed(0)
    plain = torch.nn.Linear(24, 40, bias=bias)
    model = torch.nn.Sequential(copy.deepcopy(plain), torch.nn.Identity())
    use_onednn(model)
    return plain, model


@pytest.mark.parametrize("bias", [True, False])
def test_the_map_is_the_same_also_of_a_view_and_in_a_copy(bias: bool) -> None:
    plain, model = pair(bias)
    many = [torch.randn(shape) for shape in ((7, 24), (3, 5, 24), (0, 24), (24,))]
    with torch.inference_mode():
        for inputs in (*many, torch.randn(5, 3, 24).transpose(0, 1)):
            for each in (model, copy.deepcopy(model)):
                torch.testing.assert_close(each(inputs), plain(inputs))


def test_it_learns_and_multiplies_in_bfloat16_as_before() -> None:
    plain, model = pair()
    inputs = torch.randn(6, 24)
    for learner in (plain, model):
        learner(inputs).square().sum().backward()
    assert isinstance(model[0], OneDnnLinear) and model.state_dict().keys() == {"0.weight", "0.bias"}
    assert torch.equal(model[0].weight.grad, plain.weight.grad)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(model(inputs), plain(inputs))


class Reader(torch.nn.Module):
    """A linear map of normalised vectors of tokens, of which one feature is far larger than the others."""

    device = torch.device("cpu")

    def __init__(self, bias: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.norm = torch.nn.Embedding(200, 24), torch.nn.LayerNorm(24)
        self.linear = torch.nn.Linear(24, 40, bias=bias)
        with torch.no_grad():
            self.norm.weight[5] = 40
            self.linear.weight[:, 5] /= 20

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.tokens

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.linear(self.norm(self.tokens(input_ids)))
        return output


@pytest.mark.parametrize("bias", [True, False])
def test_int8_is_near_the_map_token_by_token(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Reader(bias)
    plain, linear = copy.deepcopy(model.linear), model.linear
    use_int8(model)
    inputs = model.norm(torch.randn(300, 5, 24)).detach()
    inputs[0, 0] = 0
    with torch.inference_mode():
        rounded, exact = linear(inputs), plain(inputs)
        assert 0 < (rounded - exact).std() < 0.015 * exact.std()
        assert (rounded - exact)[:3].abs().max() < 0.05 * exact.std()
        assert torch.equal(linear(torch.cat([1000 * inputs, inputs]))[300:], rounded)
        with monkeypatch.context() as without:
            without.setattr("ssrem.encoders.layers._FAST_INT8", False)
            assert torch.equal(linear(inputs), rounded)
            assert torch.equal(copy.deepcopy(linear)(inputs), rounded)
        # Large values of one sign: sums that would not fit if the weights had 8 bits.
        del linear.packed
        linear.whole.fill_(63)
        linear.steps.fill_(1 / 63)
        linear.factors.fill_(1)
        linear.offset.zero_()
        torch.testing.assert_close(linear(torch.ones(2, 24)), torch.full((2, 40), 24.0))
    linear(inputs).sum().backward()
    assert linear.weight.grad is not None and "linear.whole" not in model.state_dict()
