// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {IX402Facilitator} from "../../interfaces/IX402Facilitator.sol";
import {MockUSDC} from "../../mocks/MockUSDC.sol";
import {Vm} from "../utils/Vm.sol";

/// @notice An authorization of which the logs prove that it brought `value` to the facilitator.
struct Receipt {
    address token;
    address payer;
    bytes32 authorizationNonce;
    uint256 value;
}

/**
 * @title The rule by which an honest recoverer decides, from the logs of one transaction
 * @notice `AuthorizationUsed` of a token, directly followed by that token's `Transfer` from the same payer to the
 * facilitator, in a transaction without a `Settled` for that authorization.
 */
library Recovery {
    function receipts(Vm.Log[] memory logs, address facilitator)
        internal
        pure
        returns (Receipt[] memory found)
    {
        found = new Receipt[](logs.length);
        uint256 count = 0;
        for (uint256 i = 0; i + 1 < logs.length; ++i) {
            if (!isReceived(logs[i], logs[i + 1], facilitator) || isSettled(logs, logs[i], facilitator)) {
                continue;
            }
            found[count++] = Receipt({
                token: logs[i].emitter,
                payer: address(uint160(uint256(logs[i].topics[1]))),
                authorizationNonce: logs[i].topics[2],
                value: abi.decode(logs[i + 1].data, (uint256))
            });
        }
        assembly ("memory-safe") {
            mstore(found, count)
        }
    }

    function isReceived(Vm.Log memory used, Vm.Log memory moved, address facilitator)
        private
        pure
        returns (bool)
    {
        return used.topics[0] == MockUSDC.AuthorizationUsed.selector && moved.emitter == used.emitter
            && moved.topics[0] == IERC20.Transfer.selector && moved.topics[1] == used.topics[1]
            && moved.topics[2] == bytes32(uint256(uint160(facilitator)));
    }

    function isSettled(Vm.Log[] memory logs, Vm.Log memory used, address facilitator)
        private
        pure
        returns (bool)
    {
        for (uint256 i = 0; i < logs.length; ++i) {
            if (
                logs[i].emitter == facilitator && logs[i].topics[0] == IX402Facilitator.Settled.selector
                    && logs[i].topics[1] == bytes32(uint256(uint160(used.emitter)))
                    && logs[i].topics[2] == used.topics[1] && logs[i].topics[3] == used.topics[2]
            ) return true;
        }
        return false;
    }
}
