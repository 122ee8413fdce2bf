// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../../interfaces/IX402Facilitator.sol";
import {FacilitatorFixture} from "../utils/FacilitatorFixture.sol";

/**
 * @title A recoverer who claims whatever it can for itself, with the help of a payer
 * @dev Each public function is one action. Value is stranded, payments are settled and cancelled, and the thief claims
 * any of them, as they were signed or with another value.
 */
contract Thief is FacilitatorFixture {
    uint256 public constant FORWARD_LIMIT = 5e5;

    uint256 public stranded;
    uint256 public settled;
    uint256 public taken;
    uint256 public claims;

    IX402Facilitator.Payment[] private _signed;
    mapping(bytes32 authorizationNonce => bool) private _claimed;

    constructor() {
        deploy();
        usdc.mint(payer, 1e15);
        vm.prank(ADMIN);
        facilitator.setForwardLimit(address(usdc), FORWARD_LIMIT);
    }

    /// @notice Somebody sends tokens to the facilitator by mistake.
    function sendPlainly(uint256 seed) external {
        uint256 value = _value(seed);
        fund(address(facilitator), value);
        stranded += value;
    }

    /// @notice Somebody submits a payment straight to the token.
    function submitDirectly(uint256 seed) external {
        IX402Facilitator.Payment memory payment = _sign(seed);
        submitDirectly(payment);
        stranded += payment.authorization.value;
    }

    /// @notice The operator settles a payment.
    function settle(uint256 seed) external {
        IX402Facilitator.Payment memory payment = _sign(seed);
        settle(payment, RECIPIENT);
        settled += payment.authorization.value;
    }

    /// @notice The payer cancels what it has signed.
    function cancel(uint256 seed) external {
        bytes32 nonce = _sign(seed).authorization.nonce;
        usdc.cancelAuthorization(payer, nonce, signCancellation(PAYER_KEY, payer, nonce));
    }

    /// @notice The thief claims one of them.
    function claim(uint256 seed) external {
        if (_signed.length == 0) return;
        IX402Facilitator.Payment memory payment = _signed[seed / 3 % _signed.length];
        IX402Facilitator.Authorization memory authorization = payment.authorization;
        bool isAltered = seed % 3 == 0;
        if (isAltered) authorization.value += 1 + seed % 7;
        vm.prank(RECOVERER);
        try facilitator.forwardReceived(address(usdc), authorization, payment.signature, RECOVERER) {
            assertFalse(isAltered, "what nobody signed was paid out");
            assertFalse(_claimed[authorization.nonce], "an authorization was paid out twice");
            _claimed[authorization.nonce] = true;
            taken += authorization.value;
            ++claims;
        } catch {}
    }

    /// @notice Time passes.
    function wait(uint256 seed) external {
        vm.warp(block.timestamp + seed % 8 hours);
    }

    function held() external view returns (uint256) {
        return usdc.balanceOf(address(facilitator));
    }

    function ofThief() external view returns (uint256) {
        return usdc.balanceOf(RECOVERER);
    }

    function ofRecipient() external view returns (uint256) {
        return usdc.balanceOf(RECIPIENT);
    }

    function _sign(uint256 seed) private returns (IX402Facilitator.Payment memory payment) {
        payment = signPayment(PAYER_KEY, authorize(payer, _value(seed), bytes32(_signed.length)));
        _signed.push(payment);
    }

    function _value(uint256 seed) private pure returns (uint256) {
        return seed / 11 % 4e5;
    }
}
